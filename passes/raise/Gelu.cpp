// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"
#include <cmath>

namespace shardc::raising {

using namespace match;

/// x * 0.5 * (1 + f(x)) in any order: finds x and f(x). Only where nothing else uses the product.
static bool halfOnePlus(Op &root, const OpDef &f, Value *&x, Value *&argument) {
  if (!root.is(kMul) && !root.is(kDiv))
    return false;
  Product p = product(root.result());
  if (p.factors.size() != 2 || std::abs(p.number - 0.5) > 1e-6)
    return false;
  for (unsigned i : {0, 1}) {
    Value *call;
    double one;
    x = p.factors[1 - i];
    if (withNumber(p.factors[i], kAdd, call, one) && one == 1 && unary(call, f, argument))
      return true;
  }
  return false;
}

static void raiseTo(Op &root, const OpDef &def, Value *x) {
  Builder build(root.graph(), &root);
  build.stampLike(root);
  replace(root.result(), build.make(def, {x}));
}

/// x * 0.5 * (1 + erf(x / sqrt 2))
bool gelu(Op &root) {
  Value *x, *argument;
  if (!halfOnePlus(root, kErf, x, argument))
    return false;
  Product p = product(argument);
  if (p.factors.size() != 1 || p.factors[0] != x || std::abs(p.number - std::sqrt(0.5)) > 1e-6)
    return false;
  raiseTo(root, kGelu, x);
  return true;
}

/// x^3, as pow(x, 3) or products.
static bool isCube(const Value *value, const Value *x) {
  Value *a, *b, *of;
  if (binary(value, kPow, a, b))
    return a == x && isNumber(b, 3);
  if (!binary(value, kMul, a, b))
    return false;
  return (a == x && square(b, of) && of == x) || (b == x && square(a, of) && of == x);
}

static bool isCubic(double factor) { return std::abs(factor - 0.044715) < 1e-7; }

/// x + 0.044715 x^3
static bool linearPlusCubic(const Value *value, const Value *x) {
  Value *a, *b, *cube;
  double factor;
  if (!binary(value, kAdd, a, b))
    return false;
  for (auto [linear, cubic] : {std::pair(a, b), std::pair(b, a)})
    if (linear == x && withNumber(cubic, kMul, cube, factor) && isCubic(factor) && isCube(cube, x))
      return true;
  return false;
}

/// 1 + 0.044715 x^2
static bool onePlusSquare(const Value *value, const Value *x) {
  Value *scaled;
  double one;
  if (!withNumber(value, kAdd, scaled, one) || one != 1)
    return false;
  Product p = product(scaled);
  if (!isCubic(p.number))
    return false;
  Value *of;
  return p.factors.size() == 2 ? p.factors[0] == x && p.factors[1] == x
                               : p.factors.size() == 1 && square(p.factors[0], of) && of == x;
}

/// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), the inner sum also as x * (1 + 0.044715 x^2)
bool geluTanh(Op &root) {
  Value *x, *argument;
  if (!halfOnePlus(root, kTanh, x, argument))
    return false;
  Product p = product(argument);
  if (std::abs(p.number - std::sqrt(2 / M_PI)) > 1e-6)
    return false;
  llvm::ArrayRef<Value *> f = p.factors;
  if (!(f.size() == 1 && linearPlusCubic(f[0], x)) && !(f.size() == 2 && f[0] == x && onePlusSquare(f[1], x)) &&
      !(f.size() == 2 && f[1] == x && onePlusSquare(f[0], x)))
    return false;
  raiseTo(root, kGeluTanh, x);
  return true;
}

/// x * sigmoid(x). Only where nothing else uses the sigmoid.
bool silu(Op &root) {
  Value *a, *b, *of;
  if (!binary(root.result(), kMul, a, b))
    return false;
  for (auto [x, factor] : {std::pair(a, b), std::pair(b, a)})
    if (unary(factor, kSigmoid, of) && of == x && usedOnce(factor)) {
      raiseTo(root, kSilu, x);
      return true;
    }
  return false;
}

} // namespace shardc::raising
