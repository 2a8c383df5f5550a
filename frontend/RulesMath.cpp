// SPDX-License-Identifier: Apache-2.0
// Nodes that compute element by element and are more than one op, or an op with conditions.
#include "frontend/NodeContext.h"
#include "frontend/OnnxTensor.h"
#include "ir/graph/Fold.h"
#include <numbers>

namespace shardc {
namespace {

/// a and b in one element type, by Emitter calls over scalars of a's type.
struct Terms {
  explicit Terms(NodeContext &n) : b(n.b), dtype(n.type(0).dtype) {}
  Emitter &b;
  DType dtype;
  Value *number(double v) { return b.scalar(dtype, v); }
  Value *add(Value *x, Value *y) { return b.emit(kAdd, {x, y}); }
  Value *sub(Value *x, Value *y) { return b.emit(kSub, {x, y}); }
  Value *mul(Value *x, Value *y) { return b.emit(kMul, {x, y}); }
  Value *div(Value *x, Value *y) { return b.emit(kDiv, {x, y}); }
  Value *max(Value *x, Value *y) { return b.emit(kMax, {x, y}); }
  Value *min(Value *x, Value *y) { return b.emit(kMin, {x, y}); }
  Value *less(Value *x, Value *y) { return b.emit(kLess, {x, y}); }
  Value *exp(Value *x) { return b.emit(kExp, {x}); }
};

void cast(NodeContext &n) {
  int64_t to = n.intAttr("to", 0);
  auto dtype = onnxDType(to);
  if (!dtype)
    return n.unsupported("cast to " + onnxTypeName(to));
  n.set(0, n.b.cast(n.in(0), *dtype));
}

void castLike(NodeContext &n) { n.set(0, n.b.cast(n.in(0), n.type(1).dtype)); }

void clip(NodeContext &n) {
  Value *x = n.in(0);
  if (n.in(1))
    x = n.b.emit(kMax, {x, n.in(1)});
  if (n.in(2))
    x = n.b.emit(kMin, {x, n.in(2)});
  n.set(0, x);
}

template <const OpDef &def> void variadic(NodeContext &n) {
  Value *result = nullptr;
  for (Value *value : n.inputs()) {
    if (!value)
      return n.b.fail("inputs: got an absent one");
    result = result ? n.b.emit(def, {result, value}) : value;
  }
  n.set(0, result);
}

void mean(NodeContext &n) {
  variadic<kAdd>(n);
  Terms t(n);
  if (n.numInputs() > 1)
    n.set(0, t.div(n.outputs()[0], t.number(n.numInputs())));
}

void gelu(NodeContext &n) {
  std::string approximate = n.stringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.b.fail("approximate: got '" + approximate + "', wanted 'none' or 'tanh'");
  n.set(0, n.b.emit(approximate == "tanh" ? kGeluTanh : kGelu, {n.in(0)}));
}

/// x above 0, scale (e^(x/by) - 1) below, times `outer`; e^ is taken where it cannot overflow.
void exponentialUnit(NodeContext &n, double scale, double by, double outer) {
  Terms t(n);
  Value *x = n.in(0), *zero = t.number(0);
  Value *low = t.min(x, zero);
  Value *curve =
      t.mul(t.number(scale), t.sub(t.exp(by == 1 ? low : t.div(low, t.number(by))), t.number(1)));
  Value *y = n.b.where(t.less(zero, x), x, curve);
  n.set(0, outer == 1 ? y : t.mul(t.number(outer), y));
}
void elu(NodeContext &n) { exponentialUnit(n, n.floatAttr("alpha", 1), 1, 1); }
void celu(NodeContext &n) {
  double alpha = n.floatAttr("alpha", 1);
  if (alpha == 0)
    return n.b.fail("alpha: got 0");
  exponentialUnit(n, alpha, alpha, 1);
}
void selu(NodeContext &n) {
  exponentialUnit(n, n.floatAttr("alpha", 1.67326319217681884765625), 1,
                  n.floatAttr("gamma", 1.05070102214813232421875));
}

void leakyRelu(NodeContext &n) {
  Terms t(n);
  Value *x = n.in(0);
  n.set(0, n.b.where(t.less(x, t.number(0)), t.mul(t.number(n.floatAttr("alpha", 0.01f)), x), x));
}

void parametricRelu(NodeContext &n) {
  Terms t(n);
  Value *x = n.in(0);
  n.set(0, n.b.where(t.less(x, t.number(0)), t.mul(n.in(1), x), x));
}

void thresholdedRelu(NodeContext &n) {
  Terms t(n);
  Value *x = n.in(0);
  n.set(0, n.b.where(t.less(t.number(n.floatAttr("alpha", 1)), x), x, t.number(0)));
}

Value *clampedLine(NodeContext &n, double slope, double offset) {
  Terms t(n);
  Value *line = t.add(t.mul(t.number(slope), n.in(0)), t.number(offset));
  return t.max(t.min(line, t.number(1)), t.number(0));
}
void hardSigmoid(NodeContext &n) {
  n.set(0, clampedLine(n, n.floatAttr("alpha", 0.2f), n.floatAttr("beta", 0.5f)));
}
void hardSwish(NodeContext &n) {
  n.set(0, n.b.emit(kMul, {n.in(0), clampedLine(n, 1.0 / 6, 0.5)}));
}

void swish(NodeContext &n) {
  Terms t(n);
  double alpha = n.floatAttr("alpha", 1);
  Value *inner = alpha == 1 ? n.in(0) : t.mul(t.number(alpha), n.in(0));
  n.set(0, t.mul(n.in(0), n.b.emit(kSigmoid, {inner})));
}

void mish(NodeContext &n) {
  n.set(0, n.b.emit(kMul, {n.in(0), n.b.emit(kTanh, {n.b.emit(kSoftplus, {n.in(0)})})}));
}

void softsign(NodeContext &n) {
  Terms t(n);
  n.set(0, t.div(n.in(0), t.add(t.number(1), n.b.emit(kAbs, {n.in(0)}))));
}

void sinh(NodeContext &n) {
  Terms t(n);
  n.set(0, t.mul(t.number(0.5), t.sub(t.exp(n.in(0)), t.exp(n.b.emit(kNeg, {n.in(0)})))));
}
void cosh(NodeContext &n) {
  Terms t(n);
  n.set(0, t.mul(t.number(0.5), t.add(t.exp(n.in(0)), t.exp(n.b.emit(kNeg, {n.in(0)})))));
}
void tan(NodeContext &n) {
  n.set(0, n.b.emit(kDiv, {n.b.emit(kSin, {n.in(0)}), n.b.emit(kCos, {n.in(0)})}));
}

/// The base's type is the result's; an integer base with a float exponent is computed in f64.
void power(NodeContext &n) {
  DType base = n.type(0).dtype, exponent = n.type(1).dtype;
  DType in = !isFloat(base) && isFloat(exponent) ? DType::F64 : base;
  n.set(0, n.b.cast(n.b.emit(kPow, {n.b.cast(n.in(0), in), n.b.cast(n.in(1), in)}), base));
}

void modulo(NodeContext &n) {
  bool fmod = n.intAttr("fmod", 0);
  if (!n.type(0).isFloat() &&
      fmod) { // sign of the dividend: a - (a / b) b with a quotient that truncates
    Terms t(n);
    return n.set(0, t.sub(n.in(0), t.mul(t.div(n.in(0), n.in(1)), n.in(1))));
  }
  if (n.type(0).isFloat() && !fmod)
    return n.b.fail("fmod: got 0 for floats, wanted 1");
  n.set(0, n.b.emit(kMod, {n.in(0), n.in(1)}));
}

void isInf(NodeContext &n) {
  bool negative = n.intAttr("detect_negative", 1), positive = n.intAttr("detect_positive", 1);
  Value *any = n.b.emit(kIsInf, {n.in(0)}), *zero = n.b.scalar(n.type(0).dtype, 0);
  if (negative && !positive)
    any = n.b.emit(kAnd, {any, n.b.emit(kLess, {n.in(0), zero})});
  else if (positive && !negative)
    any = n.b.emit(kAnd, {any, n.b.emit(kGreater, {n.in(0), zero})});
  else if (!positive)
    any = n.b.splat(Tensor::splat(DType::Bool, {}, 0), n.type(0).dims);
  n.set(0, any);
}

constexpr NodeRule kRules[] = {
    {"Cast", 1, 1, cast},
    {"CastLike", 2, 2, castLike},
    {"Clip", 1, 3, clip},
    {"Max", 1, kAnyNumber, variadic<kMax>},
    {"Min", 1, kAnyNumber, variadic<kMin>},
    {"Sum", 1, kAnyNumber, variadic<kAdd>},
    {"Mean", 1, kAnyNumber, mean},
    {"Gelu", 1, 1, gelu},
    {"Elu", 1, 1, elu},
    {"Celu", 1, 1, celu},
    {"Selu", 1, 1, selu},
    {"LeakyRelu", 1, 1, leakyRelu},
    {"PRelu", 2, 2, parametricRelu},
    {"ThresholdedRelu", 1, 1, thresholdedRelu},
    {"HardSigmoid", 1, 1, hardSigmoid},
    {"HardSwish", 1, 1, hardSwish},
    {"Swish", 1, 1, swish},
    {"Mish", 1, 1, mish},
    {"Softsign", 1, 1, softsign},
    {"Sinh", 1, 1, sinh},
    {"Cosh", 1, 1, cosh},
    {"Tan", 1, 1, tan},
    {"Pow", 2, 2, power},
    {"Mod", 2, 2, modulo},
    {"IsInf", 1, 1, isInf},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kMathRules = kRules;

} // namespace shardc
