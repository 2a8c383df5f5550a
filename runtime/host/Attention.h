// SPDX-License-Identifier: Apache-2.0
// What attention and attention_grad share: sizes, operands of one head, scores of a block of rows.
#pragma once

#include "runtime/host/Checks.h"
#include "runtime/host/Dropout.h"
#include "runtime/host/Gemm.h"
#include "runtime/host/Simd.h"

namespace shardc::host {

/// Bytes of one block of scores. Blocks lie on the stack of the thread that works on a head.
constexpr int64_t kScoreBytes = 192 << 10;

/// Below this a row's logarithm of the sum of exponentials is that of scores that are all masked.
constexpr double kMaskedLse = -1e30;

/// q[B,Sq,H,D], k[B,Sk,H,D], v[B,Sk,H,Dv]; scores [B,H,Sq,Sk]. Attributes scale, dropout, id,
/// batch_major, fill (the score where the mask is false), mask_adds.
struct AttentionShape {
  DType dtype = DType::F32;
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, depth = 0, valueDepth = 0;
  double scale = 1, dropout = 0, fill = 0;
  int64_t id = 0, batchMajor = 0, maskAdds = 0, blockRows = 1;
  Dims biasStrides, maskStrides; ///< over the scores; empty: absent

  /// Multiplications of one head, forward.
  double headCost() const { return double(queries * keys) * double(depth + valueDepth); }
  Dims scores() const { return {batch, heads, queries, keys}; }
  Dims out() const { return {batch, queries, heads, valueDepth}; }
  Dims lse() const { return {batch, heads, queries}; }
};

/// The place of an operand that an op never has.
constexpr unsigned kNoOperand = ~0u;

/// Operands q, k, v from `q` on; the others by position.
bool attentionShape(Checks &c, unsigned q, unsigned bias, unsigned mask, AttentionShape &shape);

/// A [B, S, H, D] operand or result.
template <typename T> struct Heads {
  T *data;
  int64_t batch, row, head;
  explicit Heads(const Array &a)
      : data(a.as<T>()), batch(a.strides[0]), row(a.strides[1]), head(a.strides[2]) {}
  T *at(int64_t b, int64_t h, int64_t i) const { return data + b * batch + h * head + i * row; }
  Matrix<T> matrix(int64_t b, int64_t h, int64_t i) const { return {at(b, h, i), row, 1}; }
};

/// Scores before softmax.
template <typename T> struct Scores {
  static constexpr double kProducts = 1; ///< q k^T
  const AttentionShape &shape;
  Heads<T> q, k;
  const T *bias;
  const uint8_t *mask;
  /// k is the operand behind q.
  Scores(const AttentionShape &shape, const Checks &c, unsigned q, unsigned bias, unsigned mask)
      : shape(shape), q(c.in(q)), k(c.in(q + 1)), bias(c.in(bias).as<T>()), mask(c.in(mask).as<uint8_t>()) {}

  /// True entries of row i attend; null if all do.
  const uint8_t *maskRow(int64_t b, int64_t h, int64_t i) const {
    return mask ? mask + b * shape.maskStrides[0] + h * shape.maskStrides[1] +
                      i * shape.maskStrides[2]
                : nullptr;
  }

  /// Entries of row i that are false have scores that do not depend on q, k: null if all do.
  const uint8_t *constants(int64_t b, int64_t h, int64_t i) const {
    return shape.maskAdds ? nullptr : maskRow(b, h, i);
  }

  /// to[rows, Sk] = scale q k^T + bias, filled where masked, for queries [first, first + rows).
  void compute(int64_t b, int64_t h, int64_t first, int64_t rows, T *to) const {
    const int64_t n = shape.keys;
    gemm<T>(rows, n, shape.depth, T(shape.scale), q.matrix(b, h, first),
            k.matrix(b, h, 0).transposed(), T(0), to, n);
    for (int64_t i = 0; i < rows; ++i) {
      T *row = to + i * n;
      if (bias) {
        const Dims &s = shape.biasStrides;
        const T *from = bias + b * s[0] + h * s[1] + (first + i) * s[2];
        if (s[3] == 1) {
          SHARDC_INDEPENDENT
          for (int64_t j = 0; j < n; ++j)
            row[j] += from[j];
        } else {
          for (int64_t j = 0; j < n; ++j)
            row[j] += from[j * s[3]];
        }
      }
      hide(b, h, first + i, row);
    }
  }

  /// Fills where the mask hides.
  void hide(int64_t b, int64_t h, int64_t i, T *row) const {
    if (const uint8_t *attends = maskRow(b, h, i)) {
      const T fill = T(shape.fill);
      const int64_t step = shape.maskStrides[3];
      for (int64_t j = 0; j < shape.keys; ++j)
        row[j] = attends[j * step] ? row[j] : fill;
    }
  }
};

/// Element of the dropout mask that belongs to score (b, h, i, 0).
inline uint64_t dropoutElement(const AttentionShape &s, const double *scalars, int64_t b, int64_t h,
                               int64_t i) {
  uint64_t start = dropoutStart(s.batchMajor, uint64_t(scalars[kShardIndex]),
                                s.batch * s.heads * s.queries * s.keys);
  return start + ((b * s.heads + h) * s.queries + i) * s.keys;
}

/// Multiplies row i of the probabilities of a head by its dropout factors.
template <typename T>
void dropRow(const AttentionShape &s, const double *scalars, int64_t b, int64_t h, int64_t i,
             T *p) {
  constexpr int64_t kChunk = 512;
  KeepMask mask(scalars, s.dropout, s.id);
  uint64_t element = dropoutElement(s, scalars, b, h, i);
  T keep[kChunk];
  for (int64_t j = 0; j < s.keys; j += kChunk) {
    int64_t n = std::min(kChunk, s.keys - j);
    mask.draw(keep, element + j, n);
    for (int64_t l = 0; l < n; ++l)
      p[j + l] *= keep[l];
  }
}

} // namespace shardc::host
