// SPDX-License-Identifier: Apache-2.0
// AdamW (decay decoupled) and Adam (decay added to the gradient, L2), torch's formulas:
//   AdamW: p -= lr decay p                 Adam: g += decay p
//   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
#include "ir/ops/Optimizer.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) { return inferOptimizer(op, 2); }

void moments(const OptimizerStep &s, double g, double &p, double &m, double &v) {
  m += (1 - s.beta1) * (g - m);
  v = s.beta2 * v + (1 - s.beta2) * g * g;
  p -= s.lr / s.correction1 * m / (std::sqrt(v) / std::sqrt(s.correction2) + s.eps);
}

llvm::Expected<Tensors> evaluateAdamW(const Op &op, TensorArgs in) {
  return evaluateOptimizer(
      op, in, 2,
      [](const OptimizerStep &s, double decay, double g, double &p, double &m, double &v) {
        p -= s.lr * decay * p;
        moments(s, g, p, m, v);
      });
}

llvm::Expected<Tensors> evaluateAdam(const Op &op, TensorArgs in) {
  return evaluateOptimizer(op, in, 2,
                           [](const OptimizerStep &s, double decay, double g, double &p, double &m,
                              double &v) { moments(s, g + decay * p, p, m, v); });
}

constexpr const char *kOperands[] = {"param", "grad", "m", "v", "grad_scale", "scalars"};
constexpr const char *kResults[] = {"param", "m", "v"};
constexpr InPlace kUpdates[] = {{0, 0}, {2, 1}, {3, 2}};

constexpr OpDef adam(const char *mnemonic, Evaluate evaluate) {
  OpDef def{.mnemonic = mnemonic};
  def.operands = kOperands;
  def.results = kResults;
  def.infer = infer;
  def.notDifferentiable = kIsUpdate;
  def.evaluate = evaluate;
  def.cost = optimizerCost;
  def.effect = true;
  def.inPlace = kUpdates;
  def.inPlaceRequired = true;
  return def;
}

} // namespace

constinit const OpDef kAdamW = adam("adamw", evaluateAdamW);
constinit const OpDef kAdam = adam("adam", evaluateAdam);

} // namespace shardc
