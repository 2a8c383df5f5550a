// SPDX-License-Identifier: Apache-2.0
// Transcendental functions element by element.
#include "ir/ops/Pointwise.h"
#include <numbers>

namespace shardc {
namespace {

void expGradient(GradContext &g) { g.setGrad(0, g.mul(g.dOut(), g.out())); }
void logGradient(GradContext &g) { g.setGrad(0, g.div(g.dOut(), g.in(0))); }
void sqrtGradient(GradContext &g) { g.setGrad(0, g.div(g.scale(g.dOut(), 0.5), g.out())); }

// y = a^-1/2, dy/da = -1/2 y^3
void rsqrtGradient(GradContext &g) {
  Value *y = g.out();
  g.setGrad(0, g.mul(g.scale(g.dOut(), -0.5), g.mul(y, g.mul(y, y))));
}

void sinGradient(GradContext &g) { g.setGrad(0, g.mul(g.dOut(), g.make(kCos, {g.in(0)}))); }
void cosGradient(GradContext &g) { g.setGrad(0, g.neg(g.mul(g.dOut(), g.make(kSin, {g.in(0)})))); }

// 1 - y^2
void tanhGradient(GradContext &g) {
  Value *y = g.out(), *one = g.scalar(y->type().dtype, 1);
  g.setGrad(0, g.mul(g.dOut(), g.sub(one, g.mul(y, y))));
}

// y (1 - y)
void sigmoidGradient(GradContext &g) {
  Value *y = g.out(), *one = g.scalar(y->type().dtype, 1);
  g.setGrad(0, g.mul(g.dOut(), g.mul(y, g.sub(one, y))));
}

void softplusGradient(GradContext &g) {
  g.setGrad(0, g.mul(g.dOut(), g.make(kSigmoid, {g.in(0)})));
}

// 2 / sqrt(pi) * exp(-a^2)
void erfGradient(GradContext &g) {
  Value *bell = g.make(kExp, {g.neg(g.mul(g.in(0), g.in(0)))});
  g.setGrad(0, g.mul(g.dOut(), g.scale(bell, 2 * std::numbers::inv_sqrtpi)));
}

} // namespace

constinit const OpDef kExp = pointwise1("exp", "Exp", "exp(a)", expGradient);
constinit const OpDef kLog = pointwise1("log", "Log", "log(a)", logGradient);
constinit const OpDef kSqrt = pointwise1("sqrt", "Sqrt", "sqrt(a)", sqrtGradient);
constinit const OpDef kRsqrt = pointwise1("rsqrt", nullptr, "1 / sqrt(a)", rsqrtGradient);
constinit const OpDef kSin = pointwise1("sin", "Sin", "sin(a)", sinGradient);
constinit const OpDef kCos = pointwise1("cos", "Cos", "cos(a)", cosGradient);
constinit const OpDef kTanh = pointwise1("tanh", "Tanh", "tanh(a)", tanhGradient);
constinit const OpDef kSigmoid =
    pointwise1("sigmoid", "Sigmoid", "1 / (1 + exp(-a))", sigmoidGradient);
// log(1 + e^a) without overflow
constinit const OpDef kSoftplus =
    pointwise1("softplus", "Softplus", "max(a, 0) + log(1 + exp(-abs(a)))", softplusGradient);
constinit const OpDef kErf = pointwise1("erf", "Erf", "erf(a)", erfGradient);

} // namespace shardc
