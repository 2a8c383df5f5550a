// SPDX-License-Identifier: Apache-2.0
// attention(q, k, v, bias?, mask?) -> out, lse and attention_grad(dout, q, k, v, out, lse, bias?, mask?){bias_grad} ->
// dq, dk, dv
// [, dbias]: as on the host. Beside 16-bit q, k and v, lse may be f32 (and should), bias and dbias any float type.
#include "runtime/cuda/AttentionBinding.h"
#include "runtime/host/JoinedHeads.h"

namespace shardc::cuda {

using host::Array;
using host::Checks;

HeadsView headsView(const Array &a) { return {a.data, a.strides[0], a.strides[1], a.strides[2]}; }
Dims outDims(const AttentionWork &w) { return {w.batch, w.queries, w.heads, w.valueDepth}; }

static Dims scoresOf(const AttentionWork &w) { return {w.batch, w.heads, w.queries, w.keys}; }
static Dims lseOf(const AttentionWork &w) { return {w.batch, w.heads, w.queries}; }

static bool checkScores(Checks &c, const Array &a, const AttentionWork &w, const char *what, ScoresView &view) {
  Dims strides;
  if (!c.that(broadcastStrides(a, scoresOf(w), strides), std::string(what) + ": got shape " + formatDims(a.dims) +
                                                             ", wanted one that broadcasts to " +
                                                             formatDims(scoresOf(w))))
    return false;
  view.array = anyFloats(a);
  llvm::copy(strides, view.strides);
  return true;
}

/// Do `count` keys from each multiple of it on lie side by side, aligned to 16 bytes?
static bool rowsAligned(const ScoresView &a, int64_t bytes, int64_t count, int64_t keys) {
  const long long *s = a.strides;
  return a.array.data && s[3] == 1 && keys % count == 0 && (s[0] | s[1] | s[2]) * bytes % 16 == 0 &&
         reinterpret_cast<uintptr_t>(a.array.data) % 16 == 0;
}

bool checkAttentionOperands(Checks &c, const host::Binding &b, unsigned first, unsigned biasAt, unsigned maskAt,
                            AttentionWork &w) {
  const Array &q = c.in(first), &k = c.in(first + 1), &v = c.in(first + 2), &bias = c.in(biasAt), &mask = c.in(maskAt);
  if (!(checkFloat(c, q, "q") && c.dtype(k, q.dtype) && c.dtype(v, q.dtype) && c.rank(q, 4) && c.rank(k, 4) &&
        c.rank(v, 4) && c.lastDim(q) && c.lastDim(k) && c.lastDim(v)))
    return false;
  int64_t id, batchMajor, tf32, maskAdds;
  const int64_t batch = q.dims[0], queries = q.dims[1], heads = q.dims[2], depth = q.dims[3], keys = k.dims[1];
  // Blocks are numbered with 32 bits, and so are the rows of a head.
  auto scores = checkedNumElements({batch, heads, std::max<int64_t>(queries, 1), std::max<int64_t>(keys, 1)});
  if (!(c.dims(k, {batch, keys, heads, depth}) && c.dims(v, {batch, keys, heads, v.dims[3]}) &&
        c.floatAttr("scale", w.scale) && c.floatAttr("dropout", w.dropout, 0.0) &&
        c.floatAttr("fill", w.fill, -3.4028234663852886e38) && c.intAttr("id", id, 0) &&
        c.intAttr("batch_major", batchMajor, 0) && c.intAttr("tf32", tf32, 0) &&
        c.intAttr("mask_adds", maskAdds, 0) &&
        c.that(w.dropout >= 0 && w.dropout < 1, "attribute dropout: wanted 0 <= p < 1") &&
        c.that(scores && batch * heads * std::max(queries, keys) < INT32_MAX &&
                   std::max({depth, v.dims[3], queries, keys}) < INT32_MAX / 256,
               "sizes: wanted fewer than 2^31 rows of scores")))
    return false;
  w.type = elementType(q.dtype);
  w.batch = batch, w.queries = queries, w.heads = heads, w.depth = depth, w.keys = keys, w.valueDepth = v.dims[3];
  w.q = headsView(q), w.k = headsView(k), w.v = headsView(v);
  w.id = id, w.batchMajor = batchMajor != 0, w.tf32 = tf32 != 0, w.maskAdds = maskAdds != 0, w.scalars = b.scalars;
  w.wide = aligned(q, 16) && aligned(k, 16) && aligned(v, 16);
  if (bias && !(checkFloat(c, bias, "bias") && checkScores(c, bias, w, "bias", w.bias)))
    return false;
  const long long *s = w.bias.strides;
  w.biasPairs = bias && s[3] == 1 && keys % 2 == 0 && (s[0] | s[1] | s[2]) % 2 == 0 && bias.dtype != DType::F64 &&
                reinterpret_cast<uintptr_t>(bias.data) % (2 * byteSize(bias.dtype)) == 0;
  w.biasWide = rowsAligned(w.bias, byteSize(bias ? bias.dtype : DType::F32), 8, keys);
  if (mask && !(c.dtype(mask, DType::Bool) && checkScores(c, mask, w, "mask", w.mask)))
    return false;
  w.maskWide = rowsAligned(w.mask, 1, 16, keys);
  return true;
}

bool checkAttentionLse(Checks &c, const Array &lse, DType stored, AttentionWork &w) {
  if (!(checkStatistic(c, lse, stored, "lse") && c.dims(lse, lseOf(w)) && c.lastDim(lse)))
    return false;
  w.lse = anyFloats(lse), w.lseBatch = lse.strides[0], w.lseHead = lse.strides[1];
  return true;
}

bool checkAttentionShared(Checks &c, int bytes, const AttentionWork &w) {
  return c.that(bytes <= kMostAttentionShared, "head sizes: got " + std::to_string(w.depth) + " and " +
                                                   std::to_string(w.valueDepth) + ", which want " +
                                                   std::to_string(bytes) + " bytes of shared memory of " +
                                                   std::to_string(kMostAttentionShared));
}

BoundKernel bindAttention(const host::Binding &b, Device &device) {
  Checks c(b);
  AttentionWork w;
  if (!(c.arity(3, 5, 2) && checkAttentionOperands(c, b, 0, 3, 4, w) && c.dims(b.out[0], outDims(w)) &&
        c.dtype(b.out[0], b.in[0].dtype) && checkAttentionLse(c, b.out[1], b.in[0].dtype, w) && c.denseResults() && c.apart() &&
        checkAttentionShared(c, attentionShared(w), w)))
    return c.take();
  w.out = headsView(b.out[0]);
  w.wide = w.wide && aligned(b.out[0], 16);
  if (servesWg(w)) {
    if (llvm::Error error = check(prepareAttentionWg(w), "attention"))
      return error;
    return launchKernel(enqueueAttentionWg, "attention", w, b, device);
  }
  const bool mma = servesMma(w);
  if (llvm::Error error = check(mma ? prepareAttentionMma(w) : prepareAttention(w), "attention"))
    return error;
  return launchKernel(mma ? enqueueAttentionMma : enqueueAttention, "attention", w, b, device);
}

BoundKernel bindAttentionGrad(const host::Binding &given, Device &device) {
  const host::Binding b = host::splitHeads(given);
  Checks c(b);
  AttentionWork w;
  int64_t biasGrad;
  if (!(c.intAttr("bias_grad", biasGrad, 0) && c.arity(6, 8, biasGrad ? 4 : 3) && checkAttentionOperands(c, b, 1, 6, 7, w) &&
        c.that(!biasGrad || c.in(6), "attribute bias_grad: got 1 without a bias")))
    return c.take();
  const DType dtype = b.in[1].dtype;
  for (const Array *a : {&b.in[0], &b.in[4]})
    if (!(c.dims(*a, outDims(w)) && c.dtype(*a, dtype) && c.lastDim(*a)))
      return c.take();
  if (!checkAttentionLse(c, b.in[5], dtype, w))
    return c.take();
  for (size_t i = 0; i < 3; ++i)
    if (!(c.dims(b.out[i], b.in[1 + i].dims) && c.dtype(b.out[i], dtype) && c.lastDim(b.out[i])))
      return c.take();
  if (biasGrad && !(c.dims(b.out[3], b.in[6].dims) && c.contiguous(b.out[3]) && checkFloat(c, b.out[3], "dbias") &&
                    checkScores(c, b.out[3], w, "dbias", w.dbias)))
    return c.take();
  if (!(c.apart() && checkAttentionShared(c, attentionGradShared(w), w)))
    return c.take();
  w.dout = headsView(b.in[0]), w.out = headsView(b.in[4]);
  w.dq = headsView(b.out[0]), w.dk = headsView(b.out[1]), w.dv = headsView(b.out[2]);
  for (const Array *a : {&b.in[0], &b.in[4], &b.out[0], &b.out[1], &b.out[2]})
    w.wide = w.wide && aligned(*a, 16);
  if (servesGradWg(w)) {
    if (llvm::Error error = check(prepareAttentionGradWg(w), "attention_grad"))
      return error;
    return launchKernel(enqueueAttentionGradWg, "attention_grad", w, b, device, attentionGradWgScratch(w));
  }
  const bool mma = servesMma(w);
  if (llvm::Error error = check(mma ? prepareAttentionGradMma(w) : prepareAttentionGrad(w), "attention_grad"))
    return error;
  const int64_t rows = int64_t(w.batch) * w.heads * w.queries;
  return launchKernel(mma ? enqueueAttentionGradMma : enqueueAttentionGrad, "attention_grad", w, b, device,
                  mma ? attentionGradMmaScratch(w) : rows * (w.type == ElementType::F64 ? 8 : 4));
}

} // namespace shardc::cuda
