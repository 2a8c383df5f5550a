// SPDX-License-Identifier: Apache-2.0
// relative_attention(q, k, v, pos_key?, pos_query?, mask?) -> out, lse and relative_attention_grad(dout, q, k, v, pos_key?,
// pos_query?, out, lse, mask?) -> dq, dk, dv[, dpos_key][, dpos_query]: as on the host. Beside 16-bit q, k and v, lse may
// be f32 (and should).
#include "runtime/cuda/RelativeAttention.h"
#include "runtime/cuda/AttentionBinding.h"
#include "runtime/host/JoinedHeads.h"

namespace shardc::cuda {
namespace {

using host::Array;
using host::Checks;

constexpr unsigned kNone = ~0u;

/// pos_key or pos_query, where it is there.
bool checkPositions(Checks &c, const Array &a, DType dtype, AttentionWork &w, PositionsView &view) {
  if (!a)
    return true;
  if (!(c.dtype(a, dtype) && c.dims(a, {int64_t(w.queries) + w.keys - 1, w.heads, w.depth}) && c.lastDim(a)))
    return false;
  view = {a.data, a.strides[0], a.strides[1]};
  w.wide = w.wide && aligned(a, 16);
  return true;
}

/// Operands q, k, v, pos_key, pos_query from `first` on.
bool checkOperands(Checks &c, const host::Binding &b, unsigned first, unsigned maskAt, RelativeWork &w) {
  if (!checkAttentionOperands(c, b, first, kNone, maskAt, w.base))
    return false;
  const DType dtype = c.in(first).dtype;
  return checkPositions(c, c.in(first + 3), dtype, w.base, w.posKey) &&
         checkPositions(c, c.in(first + 4), dtype, w.base, w.posQuery);
}

} // namespace

BoundKernel bindRelativeAttention(const host::Binding &b, Device &device) {
  Checks c(b);
  RelativeWork w;
  if (!(c.arity(3, 6, 2) && checkOperands(c, b, 0, 5, w) && c.dims(b.out[0], outDims(w.base)) &&
        c.dtype(b.out[0], b.in[0].dtype) && checkAttentionLse(c, b.out[1], b.in[0].dtype, w.base) && c.denseResults() &&
        c.apart() && checkAttentionShared(c, relativeShared(w), w.base)))
    return c.take();
  w.base.out = headsView(b.out[0]);
  w.base.wide = w.base.wide && aligned(b.out[0], 16);
  const bool mma = servesRelativeMma(w);
  if (llvm::Error error = check(mma ? prepareRelativeMma(w) : prepareRelative(w), "relative_attention"))
    return error;
  return launchKernel(mma ? enqueueRelativeMma : enqueueRelative, "relative_attention", w, b, device);
}

BoundKernel bindRelativeAttentionGrad(const host::Binding &given, Device &device) {
  const host::Binding b = host::splitHeads(given);
  Checks c(b);
  RelativeWork w;
  const size_t results = 3 + bool(c.in(4)) + bool(c.in(5));
  if (!(c.arity(4, 9, results) && c.that(c.in(6) && c.in(7), "operands: wanted out and lse") &&
        checkOperands(c, b, 1, 8, w)))
    return c.take();
  AttentionWork &base = w.base;
  const DType dtype = b.in[1].dtype;
  for (const Array *a : {&b.in[0], &b.in[6]})
    if (!(c.dims(*a, outDims(base)) && c.dtype(*a, dtype) && c.lastDim(*a)))
      return c.take();
  if (!checkAttentionLse(c, b.in[7], dtype, base))
    return c.take();
  for (size_t i = 0; i < 3; ++i)
    if (!(c.dims(b.out[i], b.in[1 + i].dims) && c.dtype(b.out[i], dtype) && c.lastDim(b.out[i])))
      return c.take();
  size_t result = 3;
  for (unsigned i : {4u, 5u})
    if (c.in(i)) {
      PositionsView &view = i == 4 ? w.dposKey : w.dposQuery;
      if (!checkPositions(c, b.out[result++], dtype, base, view))
        return c.take();
    }
  if (!(c.apart() && checkAttentionShared(c, relativeGradShared(w), base)))
    return c.take();
  base.dout = headsView(b.in[0]), base.out = headsView(b.in[6]);
  base.dq = headsView(b.out[0]), base.dk = headsView(b.out[1]), base.dv = headsView(b.out[2]);
  for (const Array *a : {&b.in[0], &b.in[6], &b.out[0], &b.out[1], &b.out[2]})
    base.wide = base.wide && aligned(*a, 16);
  const bool mma = servesRelativeMma(w);
  if (llvm::Error error = check(mma ? prepareRelativeGradMma(w) : prepareRelativeGrad(w), "relative_attention_grad"))
    return error;
  const int64_t rows = int64_t(base.batch) * base.heads * base.queries;
  return launchKernel(mma ? enqueueRelativeGradMma : enqueueRelativeGrad, "relative_attention_grad", w, b, device,
                  mma ? relativeGradMmaScratch(w) : rows * (base.type == ElementType::F64 ? 8 : 4));
}

} // namespace shardc::cuda
