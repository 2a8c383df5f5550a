// SPDX-License-Identifier: Apache-2.0
// Gradient of relative_attention. With p and ds as in attention_grad and r = i - j + Sk - 1:
//   dq_i = scale sum_j ds_ij (k_j + pos_key_r),   dk_j = scale sum_i ds_ij (q_i + pos_query_r),   dv = p^T dout,
//   dpos_key_r = scale sum_(i - j = r') ds_ij q_i,   dpos_query_r = scale sum_(i - j = r') ds_ij k_j,
// the last two summed over the batch. Results of absent operands are left out; `joined` is as in attention_grad.
#include "ir/base/Error.h"
#include "ir/base/Workspace.h"
#include "ir/ops/RelativeAttentionDims.h"

namespace shardc {
namespace {

/// Operands before q: dout. After pos_query: out, lse, mask.
llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkRelativeAttention(check, 1, 8);
  if (!check.has(6) || !check.has(7))
    check.fail("operands: got no out or no lse, wanted both");
  if (check.failed())
    return check.error();
  checkAttentionGrad(check, 6);
  Types types{check.in(1), check.in(2), check.in(3)};
  for (unsigned i : {4u, 5u})
    if (check.has(i))
      types.push_back(check.in(i));
  return check.done(joinedTypes(check, types));
}

// Each product of the forward pass is made again, and has two of its own.
Cost cost(const Op &op) { return {relativeAttentionFlops(op, 1, 2.75), attentionBytes(op)}; }

/// What the usual kernels of a device want (runtime/cuda/RelativeAttention.cpp).
int64_t workspace(const Op &op) {
  const AttentionDims d = attentionDims(op, 1);
  const unsigned bytes = byteSize(op.operand(1)->type().dtype);
  if (numElements(d.scores()) == 0)
    return 0;
  if (bytes != 2 || d.depth != 64 || d.valueDepth != 64)
    return attentionSumsWorkspace(d.batch, d.heads, d.queries, bytes == 8 ? 8 : 4);
  const int64_t positions = op.operand(4) || op.operand(5) ? relativePositionsWorkspace(d.batch, d.heads, d.queries, d.keys) : 0;
  return relativeScoresWorkspace(d.batch, d.heads, d.queries, d.keys) + positions;
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  if (numberOf(op, "dropout", 0) > 0)
    return userError("relative_attention_grad with dropout draws random numbers, so it has no value before the step "
                     "runs");
  RelativeScores scores(op, in, 1, 8);
  const AttentionDims &d = scores.dims;
  const std::vector<double> &q = scores.q, &k = scores.k;
  std::vector<double> dout = productOperand(op, *in[0]), v = productOperand(op, *in[3]), out = toDoubles(*in[6]),
                      lse = toDoubles(*in[7]);
  std::vector<double> dq(q.size()), dk(k.size()), dv(v.size()), dposKey(scores.posKey.size()),
      dposQuery(scores.posQuery.size());
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t h = 0; h < d.heads; ++h)
      for (int64_t i = 0; i < d.queries; ++i) {
        int64_t atOut = d.outAt(b, i, h), atQ = d.qAt(b, i, h);
        double delta = 0, rowLse = lse[d.lseAt(b, h, i)];
        bool uniform = rowLse < -1e30; // all hidden: adding log(keys) to such a number is lost
        for (int64_t c = 0; c < d.valueDepth; ++c)
          delta += dout[atOut + c] * out[atOut + c];
        for (int64_t j = 0; j < d.keys; ++j) {
          int64_t atK = d.kAt(b, j, h), atV = d.vAt(b, j, h), at = scores.posAt(i, j, h);
          bool hidden = scores.mask.hides(b, h, i, j);
          double score = hidden ? scores.mask.fill : scores.score(b, h, i, j), dp = 0;
          double p = uniform ? 1.0 / double(d.keys) : std::exp(score - rowLse);
          for (int64_t c = 0; c < d.valueDepth; ++c) {
            dp += dout[atOut + c] * v[atV + c];
            dv[atV + c] += p * dout[atOut + c];
          }
          double ds = hidden ? 0 : scores.scale * p * (dp - delta);
          for (int64_t c = 0; c < d.depth; ++c) {
            dq[atQ + c] += ds * k[atK + c];
            dk[atK + c] += ds * q[atQ + c];
            if (!dposKey.empty()) {
              dq[atQ + c] += ds * scores.posKey[at + c];
              dposKey[at + c] += ds * q[atQ + c];
            }
            if (!dposQuery.empty()) {
              dk[atK + c] += ds * scores.posQuery[at + c];
              dposQuery[at + c] += ds * k[atK + c];
            }
          }
        }
      }
  DType dtype = in[0]->dtype();
  Tensors results{fromDoubles(dtype, in[1]->dims(), dq), fromDoubles(dtype, in[2]->dims(), dk),
                  fromDoubles(dtype, in[3]->dims(), dv)};
  if (!dposKey.empty())
    results.push_back(fromDoubles(dtype, in[4]->dims(), dposKey));
  if (!dposQuery.empty())
    results.push_back(fromDoubles(dtype, in[5]->dims(), dposQuery));
  return joinedTensors(op, std::move(results));
}

constexpr const char *kOperands[] = {"dout", "q", "k", "v", "pos_key?", "pos_query?", "out", "lse", "mask?"};
constexpr const char *kResults[] = {"dq", "dk", "dv", "dpos", "dpos_query"};

} // namespace

constinit const OpDef kRelativeAttentionGrad = {.mnemonic = "relative_attention_grad",
                                                .operands = kOperands,
                                                .results = kResults,
                                                .infer = infer,
                                                .notDifferentiable = kIsGradient,
                                                .evaluate = evaluate,
                                                .cost = cost,
                                                .layouts = kLastDim,
                                                .workspace = workspace};

} // namespace shardc
