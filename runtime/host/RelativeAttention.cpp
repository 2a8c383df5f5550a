// SPDX-License-Identifier: Apache-2.0
// relative_attention(q, k, v, pos_key?, pos_query?, mask?) -> out, lse: as attention, with terms of distances.
#include "runtime/host/RelativeAttention.h"
#include "runtime/host/AttentionForward.h"

namespace shardc::host {

bool relativeShape(Checks &c, unsigned q, unsigned mask, AttentionShape &s) {
  if (!attentionShape(c, q, kNoOperand, mask, s))
    return false;
  for (unsigned i : {q + 3, q + 4})
    if (const Array &pos = c.in(i))
      if (!(c.dtype(pos, s.dtype) && c.dims(pos, {s.queries + s.keys - 1, s.heads, s.depth}) && c.lastDim(pos)))
        return false;
  return true;
}

template <typename T> using RelativeAttention = AttentionForward<T, DistanceScores<T>>;

BoundKernel bindRelativeAttention(const Binding &b) {
  Checks c(b);
  AttentionShape s;
  if (!(c.arity(3, 6, 2) && relativeShape(c, 0, 5, s) && attentionResults(c, s)))
    return c.take();
  return makeReal<RelativeAttention>(s.dtype, b, c, s, 5);
}

} // namespace shardc::host
