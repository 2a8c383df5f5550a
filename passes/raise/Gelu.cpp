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

/// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
bool geluTanh(Op &root) {
  Value *x, *argument;
  if (!halfOnePlus(root, kTanh, x, argument))
    return false;
  Product p = product(argument);
  if (p.factors.size() != 1 || std::abs(p.number - std::sqrt(2 / M_PI)) > 1e-6)
    return false;
  Value *a, *b, *cube;
  double factor;
  if (!binary(p.factors[0], kAdd, a, b))
    return false;
  for (auto [linear, cubic] : {std::pair(a, b), std::pair(b, a)})
    if (linear == x && withNumber(cubic, kMul, cube, factor) && std::abs(factor - 0.044715) < 1e-7 && isCube(cube, x)) {
      raiseTo(root, kGeluTanh, x);
      return true;
    }
  return false;
}

} // namespace shardc::raising
