// SPDX-License-Identifier: Apache-2.0
// SGD, torch's formula:
//   g += decay p
//   with a momentum buffer: buf = g in the first update, then mu buf + g;
//                           g = g + mu buf (nesterov) or buf
//   p -= lr g
#include "ir/ops/Optimizer.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) { return inferOptimizer(op, 1); }

void plain(const OptimizerStep &s, double decay, double g, double &p, double &, double &) {
  p -= s.lr * (g + decay * p);
}

void withMomentum(const OptimizerStep &s, double decay, double g, double &p, double &buffer,
                  double &) {
  g += decay * p;
  buffer = s.first ? g : s.momentum * buffer + g;
  p -= s.lr * (s.nesterov ? g + s.momentum * buffer : buffer);
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  return evaluateOptimizer(op, in, 1, in[2] ? withMomentum : plain);
}

constexpr const char *kOperands[] = {"param", "grad", "momentum?", "grad_scale", "scalars"};
constexpr const char *kResults[] = {"param", "momentum"};
constexpr InPlace kUpdates[] = {{0, 0}, {2, 1}};

} // namespace

constinit const OpDef kSgd = {.mnemonic = "sgd",
                              .operands = kOperands,
                              .results = kResults,
                              .infer = infer,
                              .notDifferentiable = kIsUpdate,
                              .evaluate = evaluate,
                              .cost = optimizerCost,
                              .effect = true,
                              .inPlace = kUpdates,
                              .inPlaceRequired = true};

} // namespace shardc
