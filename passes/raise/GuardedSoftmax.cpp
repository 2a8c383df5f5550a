// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"
#include <limits>

namespace shardc::raising {

using namespace match;

/// where(isnan(softmax(s)), 0, softmax(s)) makes 0 of rows where all is -inf. The gradient of their softmax would still not be a
/// number, so the scores of such rows become 0 too:
/// where(none, 0, softmax(where(none, 0, s))), none = (max(s) = -inf)
bool guardedSoftmax(Op &root) {
  Value *weights = guarded(root.result()), *scores;
  if (!weights || !unary(weights, kSoftmax, scores))
    return false;
  Builder build(root.graph(), &root);
  build.stampLike(*weights->op());
  Value *most = build.make(kReduceMax, {scores}, {{"axes", Ints{-1}}, {"keep_dims", int64_t(1)}});
  const DType dtype = scores->type().dtype;
  Value *none = build.make(kEqual, {most, build.scalar(dtype, -std::numeric_limits<double>::infinity())});
  Value *zero = build.scalar(dtype, 0);
  Value *made = build.make(kSoftmax, {build.where(none, zero, scores)}, weights->op()->attrs);
  replace(root.result(), build.where(none, zero, made));
  return true;
}

} // namespace shardc::raising
