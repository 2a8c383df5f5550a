// SPDX-License-Identifier: Apache-2.0
// What the optimizer ops share. All update flat arrays in place, element by element:
// operands (param, grad, state..., grad_scale, scalars), results (param, state...), attr decay_end:
// elements from there on do not decay, unless the scalar kDecayAll says so. With attr ranks > 1 the arrays are slice r of a
// bucket, r = the scalar kRank, and decay_end counts in the bucket: element i is its element r x n + i. With the scalar kSkipUpdate
// nothing changes. With attr rounded = "bf16" or "f16" the last result is the (updated) parameters in that type.
// The reference computes in double and rounds once, at the end.
#pragma once

#include "ir/ops/Reference.h"
#include "ir/ops/StepScalars.h"

namespace shardc {

/// `states` is how many state operands follow the gradient; absent ones are no results.
llvm::Expected<Types> inferOptimizer(const Op &op, unsigned states);
Cost optimizerCost(const Op &op);

/// Hyperparameters of one update, and the rows of one element.
struct OptimizerStep {
  double lr, beta1, beta2, eps, decay, momentum, correction1, correction2, gradScale;
  bool nesterov, first, decayAll;
};
/// p, g (scaled) and the state of one element; `decay` is its weight decay. Changes p and the state.
using UpdateElement = void (*)(const OptimizerStep &, double decay, double g, double &p, double &s0,
                               double &s1);
llvm::Expected<Tensors> evaluateOptimizer(const Op &op, TensorArgs in, unsigned states,
                                          UpdateElement update);

} // namespace shardc
