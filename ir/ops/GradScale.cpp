// SPDX-License-Identifier: Apache-2.0
// The norm of all gradients and the factor that the update multiplies them with. Gradients hold
// d(sum)/dp, so the mean's are these / count:
//   norm = sqrt(sum of squares) / count
//   scale = 1 / count * min(1, max_norm / (norm + 1e-6))   (the last factor only if max_norm > 0)
// The sums of squares are f64 arrays of any dims, added in their order.
// As torch's clip_grad_norm_; a count of 0 gives 0 for both.
#include "ir/base/Workspace.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include "ir/ops/StepScalars.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> inferSumSquares(const Op &op) {
  OpCheck check(op);
  for (unsigned i = 0; i < op.numOperands(); ++i)
    check.isFloat(i);
  return check.done({Type(DType::F64, {int64_t(op.numOperands())})});
}

llvm::Expected<Tensors> evaluateSumSquares(const Op &op, TensorArgs in) {
  std::vector<double> sums;
  for (const Tensor *gradient : in) {
    double &sum = sums.emplace_back(0);
    for (double g : toDoubles(*gradient))
      sum += g * g;
  }
  return Tensors{fromDoubles(DType::F64, {int64_t(sums.size())}, sums)};
}

Cost costSumSquares(const Op &op) {
  Cost cost;
  for (const Value *g : op.operands()) {
    cost.flops += 2.0 * double(g->type().numElements());
    cost.bytes += double(g->type().numBytes());
  }
  return cost;
}

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  check.hasDims(0, {});
  checkScalars(check, 1);
  for (unsigned i = 2; i < op.numOperands(); ++i)
    check.isType(i, DType::F64);
  Type scalar(DType::F64, {});
  return check.done({scalar, scalar});
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  double count = in[0]->asDouble(0), maxNorm = in[1]->asDouble(step::kMaxGradNorm), sum = 0;
  for (const Tensor *squares : in.drop_front(2))
    for (double square : toDoubles(*squares))
      sum += square;
  double norm = 0, scale = 0;
  if (count != 0) {
    norm = std::sqrt(sum) / count;
    scale = 1 / count;
    if (maxNorm > 0)
      scale *= std::min(1.0, maxNorm / (norm + 1e-6));
  }
  return Tensors{Tensor::splat(DType::F64, {}, norm), Tensor::splat(DType::F64, {}, scale)};
}

constexpr const char *kGradients[] = {"g*"};
constexpr const char *kOperands[] = {"count", "scalars", "sumsq*"};
constexpr const char *kResults[] = {"grad_norm", "grad_scale"};

} // namespace

constinit const OpDef kSumSquares = {.mnemonic = "sum_squares",
                                     .operands = kGradients,
                                     .infer = inferSumSquares,
                                     .notDifferentiable = kIsUpdate,
                                     .evaluate = evaluateSumSquares,
                                     .cost = costSumSquares,
                                     .workspace = [](const Op &op) {
                                       int64_t bytes = 0;
                                       for (const Value *g : op.operands())
                                         bytes += squaresWorkspace(g->type().numElements());
                                       return bytes;
                                     }};

constinit const OpDef kGradScale = {.mnemonic = "grad_scale",
                                    .operands = kOperands,
                                    .results = kResults,
                                    .infer = infer,
                                    .notDifferentiable = kIsUpdate,
                                    .evaluate = evaluate};

} // namespace shardc
