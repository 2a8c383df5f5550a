// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dim, y = exp(x - max x) / sum exp(x - max x), its gradient, its logarithm.
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  if (check.in(0).rank() == 0)
    check.fail("operand x: got a scalar, wanted rank 1 or more");
  return check.done({check.in(0)});
}

llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  check.sameDType(0, 1);
  check.hasDims(1, check.in(0).dims);
  if (check.failed())
    return check.error();
  return infer(op);
}

void gradient(GradContext &g) { g.setGrad(0, g.make(kSoftmaxGrad, {g.dOut(), g.out()})); }

// dx = dy - exp(y) * sum dy
void logGradient(GradContext &g) {
  Value *dy = g.dOut(), *p = g.make(kExp, {g.out()});
  g.setGrad(0, g.sub(dy, g.mul(p, g.sum(dy, {dy->type().rank() - 1}, /*keepDims=*/true))));
}

Cost cost(const Op &op) {
  const Type &x = op.operand(0)->type();
  return {5.0 * double(x.numElements()), double(op.numOperands() + 1) * double(x.numBytes())};
}

template <bool kLog> llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  std::vector<double> x = toDoubles(*in[0]);
  size_t n = in[0]->dims().back();
  for (size_t row = 0; n && row < x.size(); row += n) {
    double top = *std::max_element(&x[row], &x[row] + n), sum = 0;
    for (size_t i = row; i < row + n; ++i)
      sum += std::exp(x[i] - top);
    for (size_t i = row; i < row + n; ++i)
      x[i] = kLog ? x[i] - top - std::log(sum) : std::exp(x[i] - top) / sum;
  }
  return Tensors{fromDoubles(in[0]->dtype(), in[0]->dims(), x)};
}

// dx = y * (dy - sum dy * y)
llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  std::vector<double> dy = toDoubles(*in[0]), y = toDoubles(*in[1]);
  size_t n = in[0]->dims().back();
  for (size_t row = 0; n && row < dy.size(); row += n) {
    double dot = 0;
    for (size_t i = row; i < row + n; ++i)
      dot += dy[i] * y[i];
    for (size_t i = row; i < row + n; ++i)
      dy[i] = y[i] * (dy[i] - dot);
  }
  return Tensors{fromDoubles(in[0]->dtype(), in[0]->dims(), dy)};
}

constexpr const char *kGradOperands[] = {"dy", "y"};
constexpr const char *kGradResults[] = {"dx"};

} // namespace

constinit const OpDef kSoftmax = {.mnemonic = "softmax",
                                  .operands = kNamesX,
                                  .rows = "e = exp(x - rowmax(x)); s = 1 / rowsum(e); y = e * s;",
                                  .infer = infer,
                                  .gradient = gradient,
                                  .evaluate = evaluate<false>,
                                  .cost = cost,
                                  .layouts = kLastDim,
                                  .inPlace = kInPlace0};

constinit const OpDef kSoftmaxGrad = {.mnemonic = "softmax_grad",
                                      .operands = kGradOperands,
                                      .results = kGradResults,
                                      .rows = "dx = y * (dy - rowsum(dy * y));",
                                      .infer = inferGrad,
                                      .notDifferentiable = kIsGradient,
                                      .evaluate = evaluateGrad,
                                      .cost = cost,
                                      .layouts = kLastDim,
                                      .inPlace = kInPlace01};

constinit const OpDef kLogSoftmax = {.mnemonic = "log_softmax",
                                     .operands = kNamesX,
                                     .rows = "c = x - rowmax(x); y = c - log(rowsum(exp(c)));",
                                     .infer = infer,
                                     .gradient = logGradient,
                                     .evaluate = evaluate<true>,
                                     .cost = cost,
                                     .layouts = kLastDim,
                                     .inPlace = kInPlace0};

} // namespace shardc
