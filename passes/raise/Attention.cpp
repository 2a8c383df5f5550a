// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"

namespace shardc::raising {

using namespace match;

namespace {

/// softmax(scale q k' + bias) v, all [B, H, S, D].
struct Parts {
  Value *query, *keys, *values, *bias = nullptr;
  double scale = 1, dropout = 0;
  int64_t id = 0, batchMajor = 0;
};

/// Takes numbers out of a product: x * c, x / c, also below a transpose or reshape. Returns x with the views kept.
Value *takeScale(Value *value, double &scale) {
  Product p = product(value);
  if (p.factors.size() == 1 && p.factors[0] != value) {
    scale *= p.number;
    return p.factors[0];
  }
  return value;
}

/// scores = sum of one product of queries and keys (with numbers) and terms that are the bias.
bool matchScores(Value *scores, Builder &build, Parts &parts) {
  Value *product = nullptr;
  for (Value *term : terms(scores)) {
    double scale = 1;
    Value *inner = takeScale(term, scale);
    if (!product && inner->op()->is(kMatMul) && inner->hasOneUse() && inner->type().dims == scores->type().dims &&
        !inner->op()->attrs.getInt("transpose_a", 0)) {
      product = inner;
      parts.scale = scale;
      continue;
    }
    parts.bias = parts.bias ? build.add(parts.bias, term) : term;
  }
  if (!product)
    return false;
  parts.query = takeScale(product->op()->operand(0), parts.scale);
  parts.keys = takeScale(product->op()->operand(1), parts.scale);
  if (!product->op()->attrs.getInt("transpose_b", 0)) // [B, H, D, Sk]
    parts.keys = build.transpose(parts.keys, {0, 1, 3, 2});
  return true;
}

bool usedOnce(const Value *value) { return value->hasOneUse() && !value->op()->graph().isOutput(value); }

} // namespace

bool attention(Op &root) {
  Value *weights, *scores;
  Parts parts;
  if (!binary(root.result(), kMatMul, weights, parts.values) || root.result()->type().rank() != 4 ||
      root.attrs.getInt("transpose_a", 0) || root.attrs.getInt("transpose_b", 0) || !usedOnce(weights))
    return false;
  if (Value *before; unary(weights, kDropout, before)) {
    const Attrs &attrs = weights->op()->attrs;
    parts.dropout = attrs.getFloat("p");
    parts.id = attrs.getInt("id");
    parts.batchMajor = attrs.getInt("batch_major");
    weights = before;
  }
  if (!unary(weights, kSoftmax, scores) || !usedOnce(weights) || !usedOnce(scores))
    return false;
  Builder build(root.graph(), &root);
  build.stampLike(root);
  if (!matchScores(scores, build, parts))
    return false;

  Value *q = build.transpose(parts.query, {0, 2, 1, 3});
  Value *k = build.transpose(parts.keys, {0, 2, 1, 3});
  Value *v = build.transpose(parts.values, {0, 2, 1, 3});
  const Dims &dq = q->type().dims, &dk = k->type().dims, &dv = v->type().dims;
  if (dq[0] != dk[0] || dq[2] != dk[2] || dk != dv)
    return false; // keys shared by heads, or value heads of another size: left as products
  Attrs attrs{{"scale", parts.scale}, {"dropout", parts.dropout}, {"id", parts.id}, {"batch_major", parts.batchMajor}};
  Value *out = build.make(kAttention, {q, k, v, parts.bias}, std::move(attrs));
  out->setBatchMajor(root.result()->batchMajor());
  replace(root.result(), build.transpose(out, {0, 2, 1, 3}));
  return true;
}

} // namespace shardc::raising
