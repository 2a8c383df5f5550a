// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/Optimizer.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

llvm::Expected<Types> inferOptimizer(const Op &op, unsigned states) {
  OpCheck check(op);
  check.isFloat(0);
  check.isFloat(1);
  check.hasDims(1, check.in(0).dims);
  Types types{check.in(0)};
  for (unsigned i = 2; i < 2 + states; ++i)
    if (check.has(i)) {
      check.sameDType(0, i);
      check.hasDims(i, check.in(0).dims);
      types.push_back(check.in(i));
    }
  check.isType(2 + states, DType::F64);
  check.hasDims(2 + states, {});
  checkScalars(check, 3 + states);
  int64_t end = check.integer("decay_end"), ranks = check.integer("ranks", 1), elements;
  if (ranks < 1 || llvm::MulOverflow(check.in(0).numElements(), ranks, elements))
    check.fail("attribute 'ranks': got " + llvm::Twine(ranks) + ", wanted at least 1");
  else if (end < 0 || end > elements)
    check.fail("attribute 'decay_end': got " + llvm::Twine(end) + ", wanted one in [0, " + llvm::Twine(elements) + "]");
  if (op.attrs.has("rounded")) {
    std::optional<DType> rounded = parseDType(check.text("rounded"));
    if (rounded && isHalf(*rounded) && check.in(0).dtype == DType::F32)
      types.emplace_back(*rounded, check.in(0).dims);
    else
      check.fail("attribute 'rounded': wanted bf16 or f16, of f32 parameters");
  }
  return check.done(types);
}

Cost optimizerCost(const Op &op) {
  double bytes = 0, elements = double(op.operand(0)->type().numElements());
  for (Value *value : op.operands())
    bytes += value ? double(value->type().numBytes()) : 0;
  for (unsigned i = 0; i < op.numResults(); ++i)
    bytes += double(op.result(i)->type().numBytes());
  return {12 * elements, bytes};
}

llvm::Expected<Tensors> evaluateOptimizer(const Op &op, TensorArgs in, unsigned states,
                                          UpdateElement update) {
  const Tensor &scalars = *in[3 + states];
  auto at = [&](step::Slot slot) { return scalars.asDouble(slot); };
  OptimizerStep s{.lr = at(step::kLearningRate),
                  .beta1 = at(step::kBeta1),
                  .beta2 = at(step::kBeta2),
                  .eps = at(step::kEpsilon),
                  .decay = at(step::kWeightDecay),
                  .momentum = at(step::kMomentum),
                  .correction1 = at(step::kBiasCorrection1),
                  .correction2 = at(step::kBiasCorrection2),
                  .gradScale = in[2 + states]->asDouble(0),
                  .nesterov = at(step::kNesterov) != 0,
                  .first = at(step::kFirstUpdate) != 0,
                  .decayAll = at(step::kDecayAll) != 0};
  std::vector<double> p = toDoubles(*in[0]), g = toDoubles(*in[1]), state[2];
  for (unsigned k = 0; k < 2; ++k)
    state[k] = k < states && in[2 + k] ? toDoubles(*in[2 + k]) : std::vector<double>(p.size());
  int64_t end = op.attrs.getInt("decay_end"); // counted from this rank's slice
  if (op.attrs.getInt("ranks", 1) > 1)
    end -= int64_t(at(step::kRank)) * int64_t(p.size());
  bool skip = at(step::kSkipUpdate) != 0;
  for (size_t i = 0; i < p.size() && !skip; ++i) {
    double decay = s.decayAll || int64_t(i) < end ? s.decay : 0;
    update(s, decay, g[i] * s.gradScale, p[i], state[0][i], state[1][i]);
  }
  DType dtype = in[0]->dtype();
  Tensors results{fromDoubles(dtype, in[0]->dims(), p)};
  for (unsigned k = 0; k < states; ++k)
    if (in[2 + k])
      results.push_back(fromDoubles(dtype, in[0]->dims(), state[k]));
  if (results.size() < op.numResults()) // of what is stored, not of what it was before that
    results.push_back(fromDoubles(op.result(results.size())->type().dtype, in[0]->dims(), toDoubles(results[0])));
  return results;
}

} // namespace shardc
