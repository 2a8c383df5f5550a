// SPDX-License-Identifier: Apache-2.0
// Gradient of attention, from the probabilities p = exp(scale q k^T + bias - lse):
//   dv = p^T dout,   dp = dout v^T,   ds = p (dp - sum(dout * out)),
//   dq = scale ds k, dk = scale ds^T q, dbias = ds summed to the bias's own dims.
// Where the mask hides a score, p = exp(fill - lse) and ds = 0; with mask_adds = 1 ds is 0 there for
// dbias alone.
// joined = "qkv": dq, dk and dv are one array [B,S,3,H,D]; "kv": dk and dv are one array [B,Sk,2,H,D].
// With dropout m: dv = (p m)^T dout and dp = m (dout v^T).
#include "ir/base/Error.h"
#include "ir/base/Movement.h"
#include "ir/base/Workspace.h"
#include "ir/ops/AttentionDims.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

/// The first of dq, dk, dv that is part of a joined array; 3: none is.
size_t firstJoined(llvm::StringRef joined) { return joined == "qkv" ? 0 : joined == "kv" ? 1 : 3; }

} // namespace

Types joinedTypes(OpCheck &check, Types types) {
  llvm::StringRef joined = check.hasAttr("joined") ? check.text("joined") : "";
  size_t first = firstJoined(joined);
  if (first == 3 && !joined.empty())
    check.fail("attribute 'joined': got '" + joined + "', wanted 'qkv', 'kv' or ''");
  for (size_t i = first; i + 1 < 3; ++i)
    if (types[i].dims != types[i + 1].dims)
      check.fail("attribute 'joined': got '" + joined + "' of " + formatDims(types[i].dims) + " and " +
                 formatDims(types[i + 1].dims) + ", wanted equal dims");
  if (first == 3 || check.failed())
    return types;
  types[first].dims.insert(types[first].dims.begin() + 2, int64_t(3 - first));
  types.erase(types.begin() + first + 1, types.begin() + 3);
  return types;
}

Tensors joinedTensors(const Op &op, Tensors results) {
  size_t first = firstJoined(op.attrs.has("joined") ? op.attrs.getString("joined") : "");
  if (first == 3)
    return results;
  const Type &type = op.result(first)->type();
  Dims part(results[first].dims()), strides = rowMajorStrides(part);
  part.insert(part.begin() + 2, 1);
  strides.insert(strides.begin() + 2, 0);
  llvm::SmallVector<ConcatPiece> pieces;
  for (size_t i = first; i < 3; ++i)
    pieces.push_back({results[i].bytes(), part, strides});
  Tensor joined(type.dtype, type.dims);
  concat(joined.mutableData<char>(), type.dims, 2, pieces, byteSize(type.dtype));
  results[first] = joined;
  results.erase(results.begin() + first + 1, results.begin() + 3);
  return results;
}

namespace {

/// Operands before q: dout. After v: out, lse, bias, mask.
llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkAttention(check, 1, 6, 7);
  if (check.failed())
    return check.error();
  checkAttentionGrad(check, 4);
  Types types{check.in(1), check.in(2), check.in(3)};
  if (check.flag("bias_grad")) {
    if (check.has(6))
      types.push_back(check.in(6));
    else
      check.fail("attribute 'bias_grad': got 1 without a bias, wanted 0");
  }
  types = joinedTypes(check, std::move(types));
  return check.done(types);
}

// Five products, and some twelve operations for each score.
Cost cost(const Op &op) {
  AttentionDims d = attentionDims(op, 1);
  double scores = double(numElements(d.scores()));
  return {scores * (6.0 * double(d.depth) + 4.0 * double(d.valueDepth) + 12), attentionBytes(op)};
}

/// What the usual kernels of a device want (runtime/cuda/Attention.cpp).
int64_t workspace(const Op &op) {
  AttentionDims d = attentionDims(op, 1);
  const Type &q = op.operand(1)->type();
  const Value *bias = op.attrs.getInt("bias_grad", 0) ? op.operand(6) : nullptr;
  bool biasSum = false, overBatches = false, everyRow = bias;
  if (bias) {
    const Dims &own = bias->type().dims;
    Dims dims(4 - own.size(), 1);
    dims.append(own.begin(), own.end());
    const Dims scores = d.scores();
    overBatches = dims[0] != scores[0];
    biasSum = overBatches || dims[1] != scores[1];
    everyRow = dims[2] == scores[2] && dims[3] == scores[3];
  }
  const bool narrow = byteSize(q.dtype) == 2 && d.depth == d.valueDepth;
  if (narrow && d.depth == 64 && (!bias || everyRow))
    return attentionTileWorkspace(d.batch, d.heads, d.queries, d.keys, biasSum, overBatches);
  const int64_t scores = narrow && d.depth == 128 && biasSum && everyRow ? 2 * numElements(d.scores()) : 0;
  return attentionSumsWorkspace(d.batch, d.heads, d.queries, q.dtype == DType::F64 ? 8 : 4) + scores;
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  if (numberOf(op, "dropout", 0) > 0)
    return userError("attention_grad with dropout draws random numbers, so it has no value before "
                     "the step runs");
  AttentionDims d = attentionDims(op, 1);
  double scale = numberOf(op, "scale");
  const bool maskAdds = op.attrs.getInt("mask_adds", 0);
  std::vector<double> dout = productOperand(op, *in[0]), q = productOperand(op, *in[1]), k = productOperand(op, *in[2]),
                      v = productOperand(op, *in[3]), out = toDoubles(*in[4]), lse = toDoubles(*in[5]);
  std::vector<double> dq(q.size()), dk(k.size()), dv(v.size()), bias, dbias;
  Dims strides(4, 0);
  if (in.size() > 6 && in[6]) {
    bias = toDoubles(*in[6]);
    dbias.resize(bias.size());
    strides = broadcastStrides(in[6]->dims(), d.scores());
  }
  AttentionMask mask(in.size() > 7 ? in[7] : nullptr, d.scores(), numberOf(op, "fill", 0));
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t h = 0; h < d.heads; ++h)
      for (int64_t i = 0; i < d.queries; ++i) {
        int64_t atOut = d.outAt(b, i, h), atQ = d.qAt(b, i, h);
        double delta = 0, rowLse = lse[d.lseAt(b, h, i)];
        bool uniform = rowLse < -1e30; // all hidden: adding log(keys) to such a number is lost
        for (int64_t c = 0; c < d.valueDepth; ++c)
          delta += dout[atOut + c] * out[atOut + c];
        for (int64_t j = 0; j < d.keys; ++j) {
          int64_t atK = d.kAt(b, j, h), atV = d.vAt(b, j, h);
          int64_t atBias = b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
          double score = 0, dp = 0;
          for (int64_t c = 0; c < d.depth; ++c)
            score += scale * q[atQ + c] * k[atK + c];
          for (int64_t c = 0; c < d.valueDepth; ++c)
            dp += dout[atOut + c] * v[atV + c];
          if (!bias.empty())
            score += bias[atBias];
          const bool hidden = mask.hides(b, h, i, j);
          double p =
              uniform ? 1.0 / double(d.keys) : std::exp((hidden ? mask.fill : score) - rowLse);
          double ds = hidden && !maskAdds ? 0 : p * (dp - delta);
          for (int64_t c = 0; c < d.valueDepth; ++c)
            dv[atV + c] += p * dout[atOut + c];
          for (int64_t c = 0; c < d.depth; ++c) {
            dq[atQ + c] += scale * ds * k[atK + c];
            dk[atK + c] += scale * ds * q[atQ + c];
          }
          if (!bias.empty() && !hidden)
            dbias[atBias] += ds;
        }
      }
  DType dtype = in[0]->dtype();
  Tensors results{fromDoubles(dtype, in[1]->dims(), dq), fromDoubles(dtype, in[2]->dims(), dk),
                  fromDoubles(dtype, in[3]->dims(), dv)};
  if (op.attrs.getInt("bias_grad", 0))
    results.push_back(fromDoubles(dtype, in[6]->dims(), dbias));
  return joinedTensors(op, std::move(results));
}

constexpr const char *kOperands[] = {"dout", "q", "k", "v", "out", "lse", "bias?", "mask?"};
constexpr const char *kResults[] = {"dq", "dk", "dv", "dbias"};

} // namespace

constinit const OpDef kAttentionGrad = {.mnemonic = "attention_grad",
                                        .operands = kOperands,
                                        .results = kResults,
                                        .infer = infer,
                                        .notDifferentiable = kIsGradient,
                                        .evaluate = evaluate,
                                        .cost = cost,
                                        .layouts = kLastDim,
                                        .workspace = workspace};

} // namespace shardc
