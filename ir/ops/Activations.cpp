// SPDX-License-Identifier: Apache-2.0
// Activations and dropout: pointwise functions of neural networks.
#include "ir/ops/Pointwise.h"
#include <numbers>

namespace shardc {
namespace {

// As torch: nothing passes at 0. By the result, so that the operand's memory is free after the
// forward pass.
void reluGradient(GradContext &g) {
  Value *zero = g.scalar(g.dOut()->type().dtype, 0);
  g.setGrad(0, g.where(g.make(kGreater, {g.out(0), zero}), g.dOut(), zero));
}

// y = a * cdf(a); dy/da = cdf(a) + a * pdf(a)
void geluGradient(GradContext &g) {
  Value *a = g.in(0), *one = g.scalar(a->type().dtype, 1);
  Value *erf = g.make(kErf, {g.scale(a, 1 / std::numbers::sqrt2)});
  Value *cdf = g.scale(g.add(one, erf), 0.5);
  Value *bell = g.make(kExp, {g.scale(g.mul(a, a), -0.5)});
  Value *pdf = g.scale(bell, std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  g.setGrad(0, g.mul(g.dOut(), g.add(cdf, g.mul(a, pdf))));
}

// y = a/2 (1 + t), t = tanh(c (a + k a^3)); dy/da = (1 + t)/2 + a/2 (1 - t^2) c (1 + 3 k a^2)
void geluTanhGradient(GradContext &g) {
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, k = 0.044715;
  Value *a = g.in(0), *one = g.scalar(a->type().dtype, 1), *square = g.mul(a, a);
  Value *inner = g.mul(g.scale(a, c), g.add(one, g.scale(square, k)));
  Value *t = g.make(kTanh, {inner});
  Value *slope = g.scale(g.add(one, g.scale(square, 3 * k)), c);
  Value *rise = g.mul(g.scale(a, 0.5), g.mul(g.sub(one, g.mul(t, t)), slope));
  g.setGrad(0, g.mul(g.dOut(), g.add(g.scale(g.add(one, t), 0.5), rise)));
}

// y = a s, s = sigmoid(a); dy/da = s (1 + a (1 - s)). By the operand alone: no sigmoid waits for the backward pass.
void siluGradient(GradContext &g) {
  Value *a = g.in(0), *one = g.scalar(a->type().dtype, 1), *s = g.make(kSigmoid, {a});
  g.setGrad(0, g.mul(g.dOut(), g.mul(s, g.add(one, g.mul(a, g.sub(one, s))))));
}

llvm::Expected<Types> inferDropout(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  double p = check.number("p");
  if (!(p >= 0 && p < 1))
    check.fail("attribute 'p': got " + llvm::Twine(std::to_string(p)) + ", wanted one in [0, 1)");
  if (check.integer("id") < 0)
    check.fail("attribute 'id': got a negative number, wanted one from 0 on");
  check.flag("batch_major");
  return check.done({check.in(0)});
}

// The same mask, drawn again.
void dropoutGradient(GradContext &g) { g.setGrad(0, g.make(kDropout, {g.dOut()}, g.attrs())); }

constexpr OpDef dropout() {
  OpDef def =
      pointwise1("dropout", nullptr, "a * keep(p, id, batch_major)", dropoutGradient, inferDropout);
  def.operands = kNamesX;
  return def;
}

} // namespace

constinit const OpDef kRelu = pointwise1("relu", "Relu", "max(a, 0)", reluGradient);
// The exact form: a times the normal distribution's integral.
constinit const OpDef kGelu =
    pointwise1("gelu", nullptr, "0.5 * a * (1 + erf(a * 0.70710678118654752))", geluGradient);
constinit const OpDef kGeluTanh = pointwise1(
    "gelu_tanh", nullptr, "0.5 * a * (1 + tanh(0.79788456080286536 * a * (1 + 0.044715 * a * a)))",
    geluTanhGradient);
// Also called swish.
constinit const OpDef kSilu = pointwise1("silu", nullptr, "a / (1 + exp(-a))", siluGradient);
constinit const OpDef kDropout = dropout();

} // namespace shardc
