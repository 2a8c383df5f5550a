// SPDX-License-Identifier: Apache-2.0
// What the kernels of relative_attention for every case share: tiles of 16 x 16 scores, one a thread, and the 31
// distances that a tile has.
#pragma once

#include "runtime/cuda/AttentionTile.cuh"
#include "runtime/cuda/RelativeAttention.h"

namespace shardc::cuda {

constexpr int kTileDistances = 2 * kTile - 1;

/// The row of positions of query i and key j.
__device__ inline int distanceOf(const AttentionWork &w, int i, int j) { return i - j + w.keys - 1; }

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

/// Rows in shared memory of one query, one key and their distance.
template <typename C> struct ScoreRows { const C *q, *k, *posKey, *posQuery; };

/// Score (i, j) of a head. Requires: i < queries, j < keys.
template <typename C>
__device__ inline C relativeScore(const RelativeWork &work, int b, int h, int i, int j, const ScoreRows<C> &rows) {
  const AttentionWork &w = work.base;
  if (hidden(w, b, h, i, j))
    return C(w.fill);
  C sum = dot(rows.q, rows.k, w.depth);
  if (work.posKey.data)
    sum += dot(rows.q, rows.posKey, w.depth);
  if (work.posQuery.data)
    sum += dot(rows.k, rows.posQuery, w.depth);
  return C(w.scale) * sum;
}

} // namespace shardc::cuda
