// SPDX-License-Identifier: Apache-2.0
// Scores of relative_attention for every case: tiles of 16 x 16, one a thread, and the 31 distances that a tile has.
#pragma once

#include "runtime/cuda/AttentionTile.cuh"
#include "runtime/cuda/RelativeAttention.h"

namespace shardc::cuda {

constexpr int kTileDistances = 2 * kTile - 1;

/// to[kRows][pitch(depth)] = rows from `first` on, zeros outside [0, Sq + Sk - 1). The block works together; no barrier.
template <typename T, int kRows>
__device__ void loadPositions(Compute<T> *to, const PositionsView &from, const AttentionWork &w, int h, int first) {
  if (!from.data)
    return;
  const T *base = static_cast<const T *>(from.data) + h * from.head;
  for (int r = threadIdx.x / kTile; r < kRows; r += kTileThreads / kTile) {
    const int row = first + r;
    const bool real = row >= 0 && row < w.queries + w.keys - 1;
    for (int c = threadIdx.x % kTile; c < w.depth; c += kTile)
      to[r * pitch(w.depth) + c] = real ? productOperand(base[row * from.row + c], w.tf32) : Compute<T>(0);
  }
}

/// In the form of PlainScores.
template <typename T> struct DistanceScores {
  using Work = RelativeWork;
  using C = Compute<T>;
  static constexpr int kDistances = kTileDistances;
  static constexpr int kKeyRows = kTileDistances; ///< the gradient of 16 distances takes 16 queries and 31 keys
  static constexpr bool kMaskAdds = false;
  const RelativeWork &work;
  const AttentionWork &w;
  C *posKey, *posQuery;

  __device__ DistanceScores(const Work &work, C *memory)
      : work(work), w(work.base), posKey(memory), posQuery(memory + kDistances * pitch(w.depth)) {}
  __device__ void loadDistances(int h, int query, int key) const {
    const int low = query - (key + kTile - 1) + w.keys - 1;
    loadPositions<T, kDistances>(posKey, work.posKey, w, h, low);
    loadPositions<T, kDistances>(posQuery, work.posQuery, w, h, low);
  }
  __device__ C score(int b, int h, int i, int j, const C *q, const C *k, int r) const {
    if (hidden(w, b, h, i, j))
      return C(w.fill);
    C sum = dot(q, k, w.depth);
    if (work.posKey.data)
      sum += dot(q, posKey + r * pitch(w.depth), w.depth);
    if (work.posQuery.data)
      sum += dot(k, posQuery + r * pitch(w.depth), w.depth);
    return C(w.scale) * sum;
  }
  __device__ C ofQuery(const C *q, int r, int c) const {
    return work.posQuery.data ? q[c] + posQuery[r * pitch(w.depth) + c] : q[c];
  }
  __device__ C ofKey(const C *k, int r, int c) const {
    return work.posKey.data ? k[c] + posKey[r * pitch(w.depth) + c] : k[c];
  }
};
__host__ __device__ inline const AttentionWork &baseOf(const RelativeWork &work) { return work.base; }

} // namespace shardc::cuda
