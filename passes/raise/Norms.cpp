// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"

namespace shardc::raising {

using namespace match;

/// x / rms(x), x * (1 / rms(x)) or x * rsqrt(mean(x^2) + eps).
static bool normalised(const Value *value, Value *&x, double &eps) {
  Value *a, *b, *root, *of, *variance;
  if (binary(value, kDiv, x, root) && rootMeanSquare(root, of, eps) && of == x)
    return true;
  if (!binary(value, kMul, a, b))
    return false;
  for (auto [candidate, inverse] : {std::pair(a, b), std::pair(b, a)}) {
    x = candidate;
    if (reciprocal(inverse, root) && rootMeanSquare(root, of, eps) && of == x)
      return true;
    Value *mean, *squares;
    if (unary(inverse, kRsqrt, variance) && withNumber(variance, kAdd, mean, eps) && meanOfLastDim(mean, squares) &&
        square(squares, of) && of == x)
      return true;
  }
  return false;
}

/// w * (x * rsqrt(mean(x^2) + eps)), means over the last dim
bool rmsNorm(Op &root) {
  Value *a, *b, *x;
  double eps;
  if (!binary(root.result(), kMul, a, b))
    return false;
  for (auto [weight, value] : {std::pair(a, b), std::pair(b, a)}) {
    if (!normalised(value, x, eps) || !isVector(weight, x->type().dim(-1)))
      continue;
    Builder build(root.graph(), &root);
    build.stampLike(root);
    replace(root.result(), build.make(kRmsNorm, {x, weight}, {{"axis", x->type().rank() - 1}, {"eps", eps}}));
    return true;
  }
  return false;
}

/// (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b
bool layerNorm(Op &root) {
  Value *a, *b, *c, *d, *centred, *deviation, *of, *x, *mean, *meanOf;
  double eps;
  if (!binary(root.result(), kAdd, a, b))
    return false;
  for (auto [bias, scaled] : {std::pair(a, b), std::pair(b, a)}) {
    if (!binary(scaled, kMul, c, d))
      continue;
    for (auto [weight, value] : {std::pair(c, d), std::pair(d, c)}) {
      if (!binary(value, kDiv, centred, deviation) || !rootMeanSquare(deviation, of, eps) || of != centred ||
          !binary(centred, kSub, x, mean) || !meanOfLastDim(mean, meanOf) || meanOf != x)
        continue;
      int64_t n = x->type().dim(-1);
      if (!isVector(weight, n) || !isVector(bias, n))
        continue;
      Builder build(root.graph(), &root);
      build.stampLike(root);
      replace(root.result(), build.make(kLayerNorm, {x, weight, bias}, {{"axis", x->type().rank() - 1}, {"eps", eps}}));
      return true;
    }
  }
  return false;
}

} // namespace shardc::raising
