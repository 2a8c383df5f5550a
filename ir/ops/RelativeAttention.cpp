// SPDX-License-Identifier: Apache-2.0
// Attention whose scores also depend on how far key and query are apart (DeBERTa's "disentangled" attention):
//   scores[b,h,i,j] = scale (q_i k_j + q_i pos_key_r + k_j pos_query_r),   r = i - j + Sk - 1,
//   out = dropout(softmax(where(mask, scores, fill))) v.
// Row r of pos_key and pos_query [Sq + Sk - 1, H, D] belongs to one distance; either may be absent. All else is as in
// attention.
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "ir/ops/RelativeAttentionDims.h"

namespace shardc {

void checkRelativeAttention(OpCheck &check, unsigned q, unsigned mask) {
  checkAttention(check, q, kNoOperand, mask);
  if (check.failed())
    return;
  const Dims &dims = check.in(q).dims;
  for (unsigned i : {q + 3, q + 4})
    if (check.has(i)) {
      check.sameDType(q, i);
      check.hasDims(i, {dims[1] + check.in(q + 1).dims[1] - 1, dims[2], dims[3]});
    }
}

RelativeScores::RelativeScores(const Op &op, TensorArgs in, unsigned q, unsigned maskAt)
    : dims(in[q]->dims(), in[q + 1]->dims(), in[q + 2]->dims()), scale(numberOf(op, "scale")),
      q(productOperand(op, *in[q])), k(productOperand(op, *in[q + 1])),
      mask(maskAt < in.size() ? in[maskAt] : nullptr, dims.scores(), numberOf(op, "fill", 0)) {
  auto optional = [&](unsigned i) {
    return i < in.size() && in[i] ? productOperand(op, *in[i]) : std::vector<double>();
  };
  posKey = optional(q + 3);
  posQuery = optional(q + 4);
}

double RelativeScores::score(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const double *row = &q[dims.qAt(b, i, h)], *key = &k[dims.kAt(b, j, h)];
  const int64_t at = posAt(i, j, h);
  double sum = 0;
  for (int64_t c = 0; c < dims.depth; ++c) {
    sum += row[c] * key[c];
    if (!posKey.empty())
      sum += row[c] * posKey[at + c];
    if (!posQuery.empty())
      sum += key[c] * posQuery[at + c];
  }
  return scale * sum;
}

double relativeAttentionFlops(const Op &op, unsigned q, double products) {
  AttentionDims d = attentionDims(op, q);
  // A product per term and position; that of distances has no sense beyond the scores that read it.
  double terms = 1 + bool(op.operand(q + 3)) + bool(op.operand(q + 4));
  return double(numElements(d.scores())) * products * (2.0 * double(d.depth) * terms + 2.0 * double(d.valueDepth) + 8);
}

namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkRelativeAttention(check, 0, 5);
  if (check.failed())
    return check.error();
  return check.done(attentionResults(check));
}

void gradient(GradContext &g) {
  assert(!g.dOut(1) && "lse is for the gradient op alone");
  llvm::Expected<Op *> made = g.create(
      kRelativeAttentionGrad,
      {g.dOut(), g.in(0), g.in(1), g.in(2), g.in(3), g.in(4), g.out(0), g.out(1), g.in(5)}, g.attrs());
  Op *op = llvm::cantFail(std::move(made));
  unsigned result = 0;
  for (unsigned i = 0; i < 5; ++i)
    if (g.in(i))
      g.setGrad(i, op->result(result++));
}

Cost cost(const Op &op) { return {relativeAttentionFlops(op, 0, 1), attentionBytes(op)}; }

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  if (numberOf(op, "dropout", 0) > 0)
    return userError("relative_attention with dropout draws random numbers, so it has no value before the step runs");
  RelativeScores scores(op, in, 0, 5);
  return attentionReference(op, in, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return scores.mask.hides(b, h, i, j) ? scores.mask.fill : scores.score(b, h, i, j);
  });
}

constexpr const char *kOperands[] = {"q", "k", "v", "pos_key?", "pos_query?", "mask?"};
constexpr const char *kResults[] = {"out", "lse"};

} // namespace

constinit const OpDef kRelativeAttention = {.mnemonic = "relative_attention",
                                            .operands = kOperands,
                                            .results = kResults,
                                            .infer = infer,
                                            .gradient = gradient,
                                            .evaluate = evaluate,
                                            .cost = cost,
                                            .layouts = kLastDim};

} // namespace shardc
