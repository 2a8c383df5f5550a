// SPDX-License-Identifier: Apache-2.0
// What the attention kernels for every case share: tiles of 16 x 16 scores, one a thread.
#pragma once

#include "ir/base/Philox.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Intrinsics.cuh"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

constexpr int kTile = 16, kTileThreads = kTile * kTile;
/// Below this a row's logarithm of the sum of exponentials is that of scores that are all masked.
constexpr double kMaskedLse = -1e30;

/// Rows of a tile in shared memory: one element more than they have, so that a column lies in all banks.
__host__ __device__ constexpr int pitch(int depth) { return depth + 1; }

/// The dropout factors of this step.
class Keep {
public:
  __device__ Keep(const AttentionWork &w) : on_(w.dropout > 0), heads_(w.heads), queries_(w.queries), keys_(w.keys) {
    if (!on_)
      return;
    draw_ = DropoutDraw((uint64_t)(w.scalars[kSeed]), (uint64_t)(w.scalars[kStep]), w.id, w.dropout);
    start_ = dropoutStart(w.batchMajor, (uint64_t)(w.scalars[kShardIndex]),
                          (uint64_t)(w.batch) * w.heads * w.queries * w.keys);
  }
  template <typename C> __device__ C factor(int b, int h, int i, int j) const {
    return on_ ? C(draw_.factor(start_ + (((uint64_t)(b)*heads_ + h) * queries_ + i) * keys_ + j)) : C(1);
  }

private:
  bool on_;
  int heads_, queries_, keys_;
  uint64_t start_ = 0;
  DropoutDraw draw_;
};

template <typename T> __device__ inline T *rowOf(const HeadsView &view, int b, int h, int i) {
  return static_cast<T *>(view.data) + b * view.batch + h * view.head + i * view.row;
}

/// What a product takes of an operand: f32 is rounded to TF32, to nearest even, where the command says so.
template <typename T> __device__ inline Compute<T> productOperand(T x, bool) { return widen(x); }
template <> __device__ inline float productOperand<float>(float x, bool tf32) {
  const unsigned bits = __float_as_uint(x);
  return tf32 && (bits & 0x7f800000) != 0x7f800000 ? __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu) : x;
}

/// to[16][pitch(depth)] = rows [first, first + 16) of a head, an operand of products, zeros beyond `rows`. The block works
/// together; no barrier.
template <typename T>
__device__ void loadTile(Compute<T> *to, const HeadsView &from, int b, int h, int first, int rows, int depth, bool tf32) {
  for (int r = threadIdx.x / kTile; r < kTile; r += kTileThreads / kTile) {
    const T *row = rowOf<T>(from, b, h, first + r);
    for (int c = threadIdx.x % kTile; c < depth; c += kTile)
      to[r * pitch(depth) + c] = first + r < rows ? productOperand(row[c], tf32) : Compute<T>(0);
  }
}

/// The result: rows of 16 x depth, multiplied by `factor`.
template <typename T>
__device__ void storeTile(const HeadsView &to, int b, int h, int first, int rows, int depth, const Compute<T> *from,
                          Compute<T> factor) {
  const int r = threadIdx.x / kTile;
  if (first + r >= rows)
    return;
  T *row = rowOf<T>(to, b, h, first + r);
  for (int c = threadIdx.x % kTile; c < depth; c += kTile)
    row[c] = narrow<T>(from[r * pitch(depth) + c] * factor);
}

template <typename C> __device__ inline C dot(const C *a, const C *b, int n) {
  C sum = 0;
  for (int c = 0; c < n; ++c)
    sum += a[c] * b[c];
  return sum;
}

__device__ inline bool hidden(const AttentionWork &w, int b, int h, int i, int j) {
  const long long *s = w.mask.strides;
  return w.mask.array.data &&
         !static_cast<const unsigned char *>(w.mask.array.data)[b * s[0] + h * s[1] + i * s[2] + j * s[3]];
}

/// Scores of attention, as the kernels below take them. `r`: the row of the tile's distances that query and key have.
template <typename T> struct PlainScores {
  using Work = AttentionWork;
  using C = Compute<T>;
  static constexpr int kDistances = 0;   ///< rows of positions in shared memory
  static constexpr int kKeyRows = kTile;  ///< rows of k and v that a gradient has there
  static constexpr bool kMaskAdds = true; ///< is maskAdds obeyed?
  const AttentionWork &w;

  /// `memory`: 2 kDistances rows of pitch(depth).
  __device__ PlainScores(const Work &work, C *memory) : w(work) {}
  /// Of the tile of 16 queries and 16 keys. The block works together; no barrier.
  __device__ void loadDistances(int h, int query, int key) const {}
  /// Score (i, j) of a head, from its rows of q and k in shared memory. Requires: i < queries, j < keys.
  __device__ C score(int b, int h, int i, int j, const C *q, const C *k, int r) const {
    if (hidden(w, b, h, i, j))
      return C(w.fill);
    C score = C(w.scale) * dot(q, k, w.depth);
    const long long *s = w.bias.strides;
    if (w.bias.array.data)
      score += load<C>(w.bias.array, b * s[0] + h * s[1] + i * s[2] + j * s[3]);
    return score;
  }
  /// The factors of column c of q, and of k, in a score: what its gradient passes to the other's.
  __device__ C ofQuery(const C *q, int r, int c) const { return q[c]; }
  __device__ C ofKey(const C *k, int r, int c) const { return k[c]; }
};
__host__ __device__ inline const AttentionWork &baseOf(const AttentionWork &w) { return w; }

/// Query y and key x of a tile have this row of its distances.
__device__ inline int distanceRow(int y, int x) { return y - x + kTile - 1; }

} // namespace shardc::cuda
