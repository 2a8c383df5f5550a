// SPDX-License-Identifier: Apache-2.0
// Sizes of an attention op, its checks, and its mask.
#pragma once

#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include <cmath>
#include <limits>

namespace shardc {

/// q[B,Sq,H,D], k[B,Sk,H,D], v[B,Sk,H,Dv]; the scores are [B,H,Sq,Sk].
struct AttentionDims {
  int64_t batch, queries, keys, heads, depth, valueDepth;
  AttentionDims(llvm::ArrayRef<int64_t> q, llvm::ArrayRef<int64_t> k, llvm::ArrayRef<int64_t> v)
      : batch(q[0]), queries(q[1]), keys(k[1]), heads(q[2]), depth(q[3]), valueDepth(v[3]) {}
  Dims scores() const { return {batch, heads, queries, keys}; }
  Dims out() const { return {batch, queries, heads, valueDepth}; }
  Dims lse() const { return {batch, heads, queries}; }
  int64_t qAt(int64_t b, int64_t i, int64_t h) const {
    return ((b * queries + i) * heads + h) * depth;
  }
  int64_t kAt(int64_t b, int64_t j, int64_t h) const {
    return ((b * keys + j) * heads + h) * depth;
  }
  int64_t vAt(int64_t b, int64_t j, int64_t h) const {
    return ((b * keys + j) * heads + h) * valueDepth;
  }
  int64_t outAt(int64_t b, int64_t i, int64_t h) const {
    return ((b * queries + i) * heads + h) * valueDepth;
  }
  int64_t lseAt(int64_t b, int64_t h, int64_t i) const { return (b * heads + h) * queries + i; }
};
/// Of the op's operands q, k, v from `q` on.
AttentionDims attentionDims(const Op &op, unsigned q);

/// The place of an operand that an op never has.
constexpr unsigned kNoOperand = ~0u;

/// Checks operands q, k, v at `q`, the optional bias at `bias` and mask at `mask`, and the
/// attributes that forward and gradient share. Ask `check.failed()` before the dims are used.
void checkAttention(OpCheck &check, unsigned q, unsigned bias, unsigned mask);

/// The results of a forward op whose q is operand 0, and the checks of dout (operand 0), out (`out`) and lse behind it
/// of a gradient op. Both require: checkAttention did not fail.
Types attentionResults(const OpCheck &check);
void checkAttentionGrad(OpCheck &check, unsigned out);

/// Bytes of all operands and results.
double attentionBytes(const Op &op);

/// Gradients of q, k and v as one array, where attribute `joined` asks for it: "qkv" [B,S,3,H,D], "kv" dq and [B,Sk,2,H,D].
/// What follows dv in the list stays.
Types joinedTypes(OpCheck &check, Types types);
/// The same for the values, by the attribute of a checked op.
Tensors joinedTensors(const Op &op, Tensors results);

/// The mask of a reference evaluation; null hides nothing.
class AttentionMask {
public:
  AttentionMask(const Tensor *mask, llvm::ArrayRef<int64_t> scores, double fill) : fill(fill) {
    if (mask) {
      attends_ = toDoubles(*mask);
      strides_ = broadcastStrides(mask->dims(), scores);
    }
  }
  bool hides(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return !attends_.empty() &&
           attends_[b * strides_[0] + h * strides_[1] + i * strides_[2] + j * strides_[3]] == 0;
  }
  const double fill;

private:
  std::vector<double> attends_;
  Dims strides_;
};

/// out and lse of a reference evaluation without dropout. `score(b, h, i, j)` is what the softmax sees, mask and all.
template <typename F> Tensors attentionReference(const Op &op, TensorArgs in, F score) {
  const AttentionDims d = attentionDims(op, 0);
  std::vector<double> v = productOperand(op, *in[2]), out(numElements(d.out())), lse(numElements(d.lse())), p(d.keys);
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t h = 0; h < d.heads; ++h)
      for (int64_t i = 0; i < d.queries; ++i) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < d.keys; ++j)
          top = std::max(top, p[j] = score(b, h, i, j));
        for (double &value : p)
          sum += value = std::exp(value - top);
        lse[d.lseAt(b, h, i)] = top + std::log(sum);
        for (int64_t j = 0; j < d.keys; ++j)
          for (int64_t c = 0; c < d.valueDepth; ++c)
            out[d.outAt(b, i, h) + c] += p[j] / sum * v[d.vAt(b, j, h) + c];
      }
  const DType dtype = in[0]->dtype();
  return {fromDoubles(dtype, d.out(), out), fromDoubles(wideType(dtype), d.lse(), lse)};
}

} // namespace shardc
