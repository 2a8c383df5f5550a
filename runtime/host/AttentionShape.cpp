// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Attention.h"

namespace shardc::host {

bool attentionShape(Checks &c, unsigned qIndex, unsigned biasIndex, unsigned maskIndex,
                    AttentionShape &s) {
  const Array &q = c.in(qIndex), &k = c.in(qIndex + 1), &v = c.in(qIndex + 2);
  const Array &bias = c.in(biasIndex), &mask = c.in(maskIndex);
  if (!(c.real(q) && c.dtype(k, q.dtype) && c.dtype(v, q.dtype) && c.rank(q, 4) && c.rank(k, 4) &&
        c.rank(v, 4) && c.lastDim(q) && c.lastDim(k) && c.lastDim(v)))
    return false;
  s.dtype = q.dtype;
  s.batch = q.dims[0], s.queries = q.dims[1], s.heads = q.dims[2], s.depth = q.dims[3];
  s.keys = k.dims[1], s.valueDepth = v.dims[3];
  if (!(c.dims(k, {s.batch, s.keys, s.heads, s.depth}) &&
        c.dims(v, {s.batch, s.keys, s.heads, s.valueDepth}) && c.floatAttr("scale", s.scale) &&
        c.floatAttr("dropout", s.dropout, 0.0) &&
        c.floatAttr("fill", s.fill, -3.4028234663852886e38) && c.intAttr("id", s.id, 0) &&
        c.intAttr("batch_major", s.batchMajor, 0) && c.intAttr("mask_adds", s.maskAdds, 0) &&
        c.that(s.dropout >= 0 && s.dropout < 1, "attribute dropout: wanted 0 <= p < 1") &&
        c.that(checkedNumElements(s.scores()).has_value(), "sizes: the scores overflow")))
    return false;
  if (bias && !(c.dtype(bias, s.dtype) &&
                c.that(broadcastStrides(bias, s.scores(), s.biasStrides),
                       "bias: got shape " + formatDims(bias.dims) +
                           ", wanted one that broadcasts to " + formatDims(s.scores()))))
    return false;
  if (mask && !(c.dtype(mask, DType::Bool) &&
                c.that(broadcastStrides(mask, s.scores(), s.maskStrides),
                       "mask: got shape " + formatDims(mask.dims) +
                           ", wanted one that broadcasts to " + formatDims(s.scores()))))
    return false;
  int64_t room = kScoreBytes / byteSize(s.dtype);
  s.blockRows = std::min(s.queries, room / std::max<int64_t>(1, s.keys));
  if (s.blockRows > 8)
    s.blockRows -= s.blockRows % 8;
  return c.that(s.blockRows > 0 || s.queries == 0,
                "keys: got " + std::to_string(s.keys) + ", wanted at most " + std::to_string(room));
}

} // namespace shardc::host
