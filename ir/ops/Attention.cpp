// SPDX-License-Identifier: Apache-2.0
// out = dropout(softmax(where(mask, scale q k^T + bias, fill))) v for each batch and head; lse is
// the logarithm of each row's sum of exponentials, from which the gradient op computes the
// probabilities again. Without a mask all count; `fill` is finite, so that a row of nothing else is
// uniform. With mask_adds = 1 the mask hides by adding `fill` to the product, which swallows it: the
// same scores, but see the gradient. Dropout draws for element ((b H + h) Sq + i) Sk + j of the probabilities.
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "ir/ops/AttentionDims.h"

namespace shardc {

void checkAttention(OpCheck &check, unsigned q, unsigned bias, unsigned mask) {
  check.isFloat(q);
  for (unsigned i = q; i < q + 3; ++i) {
    check.hasRank(i, 4);
    check.sameDType(q, i);
  }
  if (check.failed())
    return;
  const Dims &dims = check.in(q).dims, &k = check.in(q + 1).dims, &v = check.in(q + 2).dims;
  check.hasDims(q + 1, {dims[0], k[1], dims[2], dims[3]});
  check.hasDims(q + 2, {dims[0], k[1], dims[2], v[3]});
  Dims scores = AttentionDims(dims, k, v).scores();
  auto broadcasts = [&](unsigned i, const char *name) {
    std::optional<Dims> both = broadcastDims(check.in(i).dims, scores);
    if (!both || *both != scores)
      check.fail(llvm::Twine("operand ") + name + ": got dims " + formatDims(check.in(i).dims) +
                 ", wanted ones that broadcast to " + formatDims(scores));
  };
  if (check.has(bias)) {
    check.sameDType(q, bias);
    broadcasts(bias, "bias");
  }
  if (check.has(mask)) {
    check.isType(mask, DType::Bool);
    broadcasts(mask, "mask");
    check.number("fill");
  }
  check.flag("mask_adds");
  check.number("scale");
  check.flag("tf32");
  double dropout = check.number("dropout", 0);
  if (!(dropout >= 0 && dropout < 1))
    check.fail("attribute 'dropout': got " + llvm::Twine(std::to_string(dropout)) +
               ", wanted one in [0, 1)");
  if (dropout > 0 && check.integer("id") < 0)
    check.fail("attribute 'id': got a negative number, wanted one from 0 on");
  check.flag("batch_major");
}

AttentionDims attentionDims(const Op &op, unsigned q) {
  return AttentionDims(op.operand(q)->type().dims, op.operand(q + 1)->type().dims, op.operand(q + 2)->type().dims);
}

Types attentionResults(const OpCheck &check) {
  AttentionDims d(check.in(0).dims, check.in(1).dims, check.in(2).dims);
  const DType dtype = check.in(0).dtype;
  return {Type(dtype, d.out()), Type(wideType(dtype), d.lse())};
}

void checkAttentionGrad(OpCheck &check, unsigned out) {
  AttentionDims d(check.in(1).dims, check.in(2).dims, check.in(3).dims);
  check.hasDims(0, d.out());
  check.hasDims(out, d.out());
  check.hasDims(out + 1, d.lse());
  check.sameDType(1, 0);
  check.sameDType(1, out);
  check.isStatisticOf(out + 1, 1);
}

double attentionBytes(const Op &op) {
  double bytes = 0;
  for (Value *value : op.operands())
    bytes += value ? double(value->type().numBytes()) : 0;
  for (unsigned i = 0; i < op.numResults(); ++i)
    bytes += double(op.result(i)->type().numBytes());
  return bytes;
}

namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkAttention(check, 0, 3, 4);
  if (check.failed())
    return check.error();
  return check.done(attentionResults(check));
}

/// The result as the gradient reads it. Where nothing but where(c, out, 0) uses it, the gradient of what c hides is 0 and either serves;
/// then one of them is kept.
Value *keptResult(GradContext &g) {
  Value *out = g.out(0);
  if (!out->hasOneUse())
    return out;
  const Op &user = *out->uses().front().op;
  const bool hides = user.is(kWhere) && user.operand(1) == out && user.result()->type() == out->type();
  const Tensor *other = hides ? constantOf(user.operand(2)) : nullptr;
  return other && other->numElements() == 1 && other->asDouble(0) == 0 ? user.result() : out;
}

void gradient(GradContext &g) {
  assert(!g.dOut(1) && "lse is for the gradient op alone");
  bool bias = g.needs(3);
  Attrs attrs = g.attrs();
  attrs.set("bias_grad", int64_t(bias));
  llvm::Expected<Op *> made =
      g.create(kAttentionGrad,
               {g.dOut(), g.in(0), g.in(1), g.in(2), keptResult(g), g.out(1), g.in(3), g.in(4)}, attrs);
  Op *op = llvm::cantFail(std::move(made));
  for (unsigned i = 0; i < (bias ? 4u : 3u); ++i)
    g.setGrad(i, op->result(i));
}

// Two products, and some eight operations for each score.
Cost cost(const Op &op) {
  AttentionDims d = attentionDims(op, 0);
  double scores = double(numElements(d.scores()));
  return {scores * (2.0 * double(d.depth + d.valueDepth) + 8), attentionBytes(op)};
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  if (numberOf(op, "dropout", 0) > 0)
    return userError("attention with dropout draws random numbers, so it has no value before the "
                     "step runs");
  AttentionDims d = attentionDims(op, 0);
  double scale = numberOf(op, "scale");
  std::vector<double> q = productOperand(op, *in[0]), k = productOperand(op, *in[1]), bias;
  Dims strides(4, 0);
  if (in.size() > 3 && in[3]) {
    bias = toDoubles(*in[3]);
    strides = broadcastStrides(in[3]->dims(), d.scores());
  }
  AttentionMask mask(in.size() > 4 ? in[4] : nullptr, d.scores(), numberOf(op, "fill", 0));
  return attentionReference(op, in, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (mask.hides(b, h, i, j))
      return mask.fill;
    double dot = 0;
    for (int64_t c = 0; c < d.depth; ++c)
      dot += q[d.qAt(b, i, h) + c] * k[d.kAt(b, j, h) + c];
    const int64_t at = b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
    return scale * dot + (bias.empty() ? 0 : bias[at]);
  });
}

constexpr const char *kOperands[] = {"q", "k", "v", "bias?", "mask?"};
constexpr const char *kResults[] = {"out", "lse"};

} // namespace

constinit const OpDef kAttention = {.mnemonic = "attention",
                                    .operands = kOperands,
                                    .results = kResults,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .evaluate = evaluate,
                                    .cost = cost,
                                    .layouts = kLastDim};

} // namespace shardc
