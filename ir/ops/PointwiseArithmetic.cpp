// SPDX-License-Identifier: Apache-2.0
// Arithmetic element by element.
#include "ir/ops/Pointwise.h"

namespace shardc {
namespace {

void addGradient(GradContext &g) {
  g.setGrad(0, g.dOut());
  g.setGrad(1, g.dOut());
}

void subGradient(GradContext &g) {
  g.setGrad(0, g.dOut());
  if (g.needs(1))
    g.setGrad(1, g.neg(g.dOut()));
}

void mulGradient(GradContext &g) {
  if (g.needs(0))
    g.setGrad(0, g.mul(g.dOut(), g.in(1)));
  if (g.needs(1))
    g.setGrad(1, g.mul(g.dOut(), g.in(0)));
}

// d(a/b) = da / b - db * y / b
void divGradient(GradContext &g) {
  Value *da = g.div(g.dOut(), g.in(1));
  g.setGrad(0, da);
  if (g.needs(1))
    g.setGrad(1, g.neg(g.mul(da, g.out())));
}

/// d(a^b)/da for an exponent c that is one constant.
Value *powBaseGradient(GradContext &g, double c) {
  Value *a = g.in(0);
  if (c == 1)
    return g.dOut();
  if (c == 2)
    return g.mul(g.dOut(), g.scale(a, 2));
  if (c == 3)
    return g.mul(g.dOut(), g.scale(g.mul(a, a), 3));
  if (c == 0.5)
    return g.div(g.scale(g.dOut(), 0.5), g.out());
  if (c == -1)
    return g.neg(g.mul(g.dOut(), g.mul(g.out(), g.out())));
  Value *power = g.make(kPow, {a, g.scalar(a->type().dtype, c - 1)});
  return g.mul(g.dOut(), g.scale(power, c));
}

// d(a^b) = da * b * a^(b-1) + db * y * log a; as torch: 0 for the base where b is 0, and 0 for the
// exponent where a is 0 and b is not negative.
void powGradient(GradContext &g) {
  Value *a = g.in(0), *b = g.in(1);
  DType dtype = a->type().dtype;
  Value *zero = g.scalar(dtype, 0);
  std::optional<double> c = splatOf(b);
  if (g.needs(0) && c) {
    if (*c != 0)
      g.setGrad(0, powBaseGradient(g, *c));
  } else if (g.needs(0)) {
    Value *power = g.make(kPow, {a, g.sub(b, g.scalar(dtype, 1))});
    Value *da = g.mul(g.dOut(), g.mul(b, power));
    g.setGrad(0, g.where(g.make(kEqual, {b, zero}), zero, da));
  }
  if (g.needs(1)) {
    Value *flat = g.make(kAnd, {g.make(kEqual, {a, zero}), g.make(kGreaterEqual, {b, zero})});
    Value *db = g.mul(g.dOut(), g.mul(g.out(), g.make(kLog, {a})));
    g.setGrad(1, g.where(flat, zero, db));
  }
}

/// Max (chosen = greater) and min (chosen = less): the chosen operand takes the gradient; equal
/// ones take half each as torch.maximum does, but a constant takes nothing, so that a clip passes
/// the gradient at its bounds as torch.clamp does.
void extremeGradient(GradContext &g, const OpDef &chosen, const OpDef &chosenOrEqual) {
  Value *zero = g.scalar(g.dOut()->type().dtype, 0);
  auto share = [&](Value *mine, Value *other) {
    if (constantOf(other))
      return g.where(g.make(chosenOrEqual, {mine, other}), g.dOut(), zero);
    Value *half = g.where(g.make(kEqual, {mine, other}), g.scale(g.dOut(), 0.5), zero);
    return g.where(g.make(chosen, {mine, other}), g.dOut(), half);
  };
  if (g.needs(0))
    g.setGrad(0, share(g.in(0), g.in(1)));
  if (g.needs(1))
    g.setGrad(1, share(g.in(1), g.in(0)));
}
void maxGradient(GradContext &g) { extremeGradient(g, kGreater, kGreaterEqual); }
void minGradient(GradContext &g) { extremeGradient(g, kLess, kLessEqual); }

// fmod: y = a - b * trunc(a / b)
void modGradient(GradContext &g) {
  g.setGrad(0, g.dOut());
  if (g.needs(1)) {
    Value *quotient = g.div(g.sub(g.in(0), g.out()), g.in(1));
    g.setGrad(1, g.neg(g.mul(g.dOut(), quotient)));
  }
}

void negGradient(GradContext &g) { g.setGrad(0, g.neg(g.dOut())); }
void absGradient(GradContext &g) { g.setGrad(0, g.mul(g.dOut(), g.make(kSign, {g.in(0)}))); }
void reciprocalGradient(GradContext &g) {
  g.setGrad(0, g.neg(g.mul(g.dOut(), g.mul(g.out(), g.out()))));
}
void castGradient(GradContext &g) { g.setGrad(0, g.dOut()); }

llvm::Expected<Types> inferCast(const Op &op) {
  OpCheck check(op);
  llvm::StringRef to = check.text("to");
  std::optional<DType> dtype = parseDType(to);
  if (!dtype)
    check.fail("attribute 'to': got '" + to + "', wanted an element type such as f32");
  if (check.failed())
    return check.error();
  return check.done({Type(*dtype, check.in(0).dims)});
}

} // namespace

constinit const OpDef kAdd = pointwise2("add", "Add", "a + b", addGradient);
constinit const OpDef kSub = pointwise2("sub", "Sub", "a - b", subGradient);
constinit const OpDef kMul = pointwise2("mul", "Mul", "a * b", mulGradient);
constinit const OpDef kDiv = pointwise2("div", "Div", "a / b", divGradient);
constinit const OpDef kPow = pointwise2("pow", "Pow", "pow(a, b)", powGradient);
constinit const OpDef kMax = pointwise2("max", nullptr, "max(a, b)", maxGradient);
constinit const OpDef kMin = pointwise2("min", nullptr, "min(a, b)", minGradient);
constinit const OpDef kMod = pointwise2("mod", nullptr, "mod(a, b)", modGradient);
constinit const OpDef kNeg = pointwise1("neg", "Neg", "-a", negGradient, inferPointwise);
constinit const OpDef kAbs = pointwise1("abs", "Abs", "abs(a)", absGradient, inferPointwise);
constinit const OpDef kSign = pointwise1("sign", "Sign", "sign(a)", zeroGradient, inferPointwise);
constinit const OpDef kReciprocal =
    pointwise1("reciprocal", "Reciprocal", "1 / a", reciprocalGradient);
constinit const OpDef kCeil = pointwise1("ceil", "Ceil", "ceil(a)", zeroGradient);
constinit const OpDef kFloor = pointwise1("floor", "Floor", "floor(a)", zeroGradient);
constinit const OpDef kRound = pointwise1("round", "Round", "round(a)", zeroGradient);
constinit const OpDef kCast = pointwise1("cast", nullptr, "a", castGradient, inferCast);

} // namespace shardc
