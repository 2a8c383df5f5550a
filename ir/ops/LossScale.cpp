// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling: grad_scale of gradients that were made from unit x scale x the loss, and what becomes of the scale.
//   state: f64[4], see step::ScaleState; zeros at the start of a run, so scale = initial (state[kScaleExcess] + 1)
//   all squares finite: norm and scale as grad_scale has them, of gradients / (unit x scale); one more update is done: the scalars say its
//     bias corrections and whether it is the first; after kScaleGrowth of them in a row the scale doubles
//   else: the update is skipped (scalar kSkipUpdate = 1, grad_scale 0), the scale is halved, nothing else changes
// loss_scale is the scale of this step, skipped 0 or 1.
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include "ir/ops/StepScalars.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  check.hasDims(0, {});
  checkScalars(check, 1);
  check.isType(2, DType::F64);
  check.hasDims(2, {step::kScaleStateCount});
  for (unsigned i = 3; i < op.numOperands(); ++i)
    check.isType(i, DType::F64);
  for (const char *name : {"initial", "unit"})
    if (double value = op.attrs.getFloat(name, 0); !(value > 0 && std::isfinite(value)))
      check.fail("attribute '" + llvm::Twine(name) + "': got " + std::to_string(value) + ", wanted a number above 0");
  Type scalar(DType::F64, {});
  return check.done({scalar, scalar, scalar, scalar, Type(DType::F64, {step::kCount}), Type(DType::F64, {step::kScaleStateCount})});
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  std::vector<double> scalars = toDoubles(*in[1]), state = toDoubles(*in[2]);
  double count = in[0]->asDouble(0), sum = 0, norm = 0, factor = 0;
  double scale = op.attrs.getFloat("initial", 1) * (state[step::kScaleExcess] + 1), unit = op.attrs.getFloat("unit", 1) * scale;
  for (const Tensor *squares : in.drop_front(3))
    for (double square : toDoubles(*squares))
      sum += square;
  bool finite = std::isfinite(sum);
  if (finite) {
    double t = ++state[step::kScaleUpdates];
    scalars[step::kBiasCorrection1] = 1 - std::pow(scalars[step::kBeta1], t);
    scalars[step::kBiasCorrection2] = 1 - std::pow(scalars[step::kBeta2], t);
    scalars[step::kFirstUpdate] = t == 1;
    if (count != 0) {
      norm = std::sqrt(sum) / count / unit;
      factor = 1 / (count * unit);
      if (double most = scalars[step::kMaxGradNorm]; most > 0)
        factor *= std::min(1.0, most / (norm + 1e-6));
    }
    if (++state[step::kScaleGood] == step::kScaleGrowth) {
      state[step::kScaleGood] = 0;
      state[step::kScaleExcess] = std::min(2 * (state[step::kScaleExcess] + 1), step::kMostScale) - 1;
    }
  } else {
    norm = std::sqrt(sum);
    state[step::kScaleGood] = 0;
    ++state[step::kScaleSkipped];
    state[step::kScaleExcess] = std::max((state[step::kScaleExcess] + 1) / 2, 1 / step::kMostScale) - 1;
  }
  scalars[step::kSkipUpdate] = !finite;
  auto one = [](double value) { return Tensor::splat(DType::F64, {}, value); };
  return Tensors{one(norm), one(factor), one(scale), one(!finite), fromDoubles(DType::F64, {step::kCount}, scalars),
                 fromDoubles(DType::F64, {step::kScaleStateCount}, state)};
}

constexpr const char *kOperands[] = {"count", "scalars", "state", "sumsq*"};
constexpr const char *kResults[] = {"grad_norm", "grad_scale", "loss_scale", "skipped", "scalars", "state"};
constexpr InPlace kUpdates[] = {{2, 5}};

} // namespace

constinit const OpDef kLossScale = {.mnemonic = "loss_scale",
                                    .operands = kOperands,
                                    .results = kResults,
                                    .infer = infer,
                                    .notDifferentiable = kIsUpdate,
                                    .evaluate = evaluate,
                                    .effect = true,
                                    .inPlace = kUpdates,
                                    .inPlaceRequired = true};

} // namespace shardc
