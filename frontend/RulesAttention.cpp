// SPDX-License-Identifier: Apache-2.0
// ONNX Attention (opset 23 on) as products and a softmax; the raise pass makes one op of them where
// it can.
#include "frontend/NodeContext.h"
#include "frontend/TorchMetadata.h"
#include <cmath>
#include <limits>

namespace shardc {
namespace {

/// [B, S, H D] -> [B, H, S, D]; what has 4 dims already stays.
Value *splitHeads(NodeContext &n, unsigned i, int64_t heads) {
  const Dims &dims = n.type(i).dims;
  if (dims.size() == 4)
    return n.in(i);
  if (heads < 1 || dims[2] % heads) {
    n.b.fail("heads: got " + llvm::Twine(heads) + " for " + toString(n.type(i)));
    return nullptr;
  }
  return n.b.transpose(n.b.reshape(n.in(i), {dims[0], dims[1], heads, dims[2] / heads}),
                       {0, 2, 1, 3});
}

/// [B, K, S, D] -> [B, K group, S, D], each head `group` times in a row.
Value *repeatHeads(Emitter &b, Value *x, int64_t group) {
  if (!x || group == 1)
    return x;
  Dims d = x->type().dims;
  Value *wide =
      b.expand(b.reshape(x, {d[0], d[1], 1, d[2], d[3]}), {d[0], d[1], group, d[2], d[3]});
  return b.reshape(wide, {d[0], d[1] * group, d[2], d[3]});
}

void attention(NodeContext &n) {
  if (hadDropout(n.proto))
    n.services.notes.lostDropouts.push_back(n.b.place().str());
  Emitter &b = n.b;
  if (n.in(4) || n.in(5) || n.wants(1) || n.wants(2))
    return n.unsupported("a cache of past keys and values: export the model with use_cache=False");
  if (n.in(6))
    return n.unsupported("nonpad_kv_seqlen");
  if (n.wants(3))
    return n.unsupported("the output qk_matmul_output");
  int64_t rank = n.type(0).rank();
  if ((rank != 3 && rank != 4) || n.type(1).rank() != rank || n.type(2).rank() != rank)
    return b.fail("operands: got " + toString(n.type(0)) + ", " + toString(n.type(1)) + " and " +
                  toString(n.type(2)) + ", wanted all of 3 or all of 4 dims");
  int64_t queryHeads = n.intAttr("q_num_heads", 0), keyHeads = n.intAttr("kv_num_heads", 0);
  Value *q = splitHeads(n, 0, queryHeads), *k = splitHeads(n, 1, keyHeads),
        *v = splitHeads(n, 2, keyHeads);
  if (n.failed())
    return;
  queryHeads = q->type().dims[1], keyHeads = k->type().dims[1];
  if (keyHeads == 0 || queryHeads % keyHeads || v->type().dims[1] != keyHeads)
    return b.fail("heads: got " + llvm::Twine(queryHeads) + " of queries and " +
                  llvm::Twine(keyHeads) + " of keys");
  k = repeatHeads(b, k, queryHeads / keyHeads);
  v = repeatHeads(b, v, queryHeads / keyHeads);
  if (n.failed())
    return;
  DType dtype = n.type(0).dtype;
  int64_t queries = q->type().dims[2], keys = k->type().dims[2];
  double scale = n.floatAttr("scale", 0);
  if (!n.find("scale"))
    scale = 1 / std::sqrt(double(q->type().dims[3]));
  Value *scores = b.matmul(q, b.transpose(k, {0, 1, 3, 2}));
  scores = b.emit(kMul, {scores, b.scalar(dtype, scale)});
  Value *lowest = b.scalar(dtype, std::numeric_limits<float>::lowest());
  if (n.intAttr("is_causal", 0)) {
    scores = b.where(b.diagonal(kLessEqual, queries, keys, 0), scores, lowest);
  }
  if (Value *mask = n.in(3)) {
    if (mask->type().rank() == 0 || mask->type().dim(-1) > keys ||
        (mask->type().dim(-1) != keys && mask->type().dim(-1) != 1))
      return n.unsupported("a mask of " + toString(mask->type()) + " for " + llvm::Twine(keys) +
                           " keys");
    scores = mask->type().dtype == DType::Bool ? b.where(mask, scores, lowest)
                                               : b.emit(kAdd, {scores, mask});
  }
  if (double cap = n.floatAttr("softcap", 0)) {
    Value *limit = b.scalar(dtype, cap);
    scores = b.emit(kMul, {b.emit(kTanh, {b.emit(kDiv, {scores, limit})}), limit});
  }
  Value *y = b.matmul(b.emit(kSoftmax, {scores}), v);
  if (y && rank == 3)
    y = b.reshape(b.transpose(y, {0, 2, 1, 3}),
                  {y->type().dims[0], queries, queryHeads * y->type().dims[3]});
  n.set(0, y);
}

constexpr NodeRule kRules[] = {{"Attention", 3, 7, attention}};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kAttentionRules = kRules;

} // namespace shardc
