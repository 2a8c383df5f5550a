// SPDX-License-Identifier: Apache-2.0
// attention(q, k, v, bias?, mask?) -> out, lse.
#include "runtime/host/AttentionForward.h"

namespace shardc::host {

template <typename T> using Attention = AttentionForward<T, Scores<T>>;

BoundKernel bindAttention(const Binding &b) {
  Checks c(b);
  AttentionShape s;
  if (!(c.arity(3, 5, 2) && attentionShape(c, 0, 3, 4, s) && attentionResults(c, s)))
    return c.take();
  return makeReal<Attention>(s.dtype, b, c, s, 3, 4);
}

} // namespace shardc::host
