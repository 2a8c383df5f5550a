// SPDX-License-Identifier: Apache-2.0
// What makes the gradients of scores of relative_attention, from the scores that a lane holds in the order of
// keys.
#pragma once

#include "runtime/cuda/RelativeTiles.cuh"

namespace shardc::cuda::relative {

/// The two queries of a lane in a tile: `row`, and 8 more.
template <typename T> struct GradientRows {
  const AttentionWork &w;
  int b, h, at[2]; ///< at: 0 for one that is not real
  RowShift shifts[2];
  Widest<T> out[2][2]; ///< the lane's 16 elements of each
  float deltas[2];

  __device__ GradientRows(const AttentionWork &w, int b, int h, int row) : w(w), b(b), h(h) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const bool real = row + 8 * side < w.queries;
      at[side] = real ? row + 8 * side : 0;
      shifts[side] = RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + at[side]), w.keys, real);
#pragma unroll
      for (int c = 0; c < 2; ++c)
        out[side][c] = *reinterpret_cast<const Widest<T> *>(headRow<T>(w.out, b, h, at[side]) +
                                                            threadIdx.x % 4 * 16 + c * 8);
    }
  }
  /// The sums of dout out, of which `dout` has the tile; `own`: the first of the two in it.
  __device__ void makeDeltas(const char *dout, int own) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float sum = 0;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Widest<T> others =
            *reinterpret_cast<const Widest<T> *>(dout + tileAt(own + 8 * side, threadIdx.x % 4 * 2 + c));
#pragma unroll
        for (int l = 0; l < 8; ++l)
          sum += widen(out[side][c].at[l]) * widen(others.at[l]);
      }
      deltas[side] = quadJoin(sum, Plus());
    }
  }
  /// Of 64 keys from `firstKey` on: their weights in `out`, and the gradients of their scores. `p`: scores,
  /// still to be multiplied by `factor` = scale log2(e); `ds`: products of dout and v.
  template <bool kDrops>
  __device__ void makeGradients(float (&weight)[8][4], float (&gradient)[8][4], const float (&p)[8][4],
                                const float (&ds)[8][4], int firstKey, float factor) const {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float2 keeps[2] = {{1, 1}, {1, 1}};
      if (kDrops)
        ScoreEffects(w, b, h).keepPairs(keeps, at, firstKey + n * 8 + threadIdx.x % 4 * 2);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const RowShift &shift = shifts[e / 2];
        const float keep = e % 2 ? keeps[e / 2].y : keeps[e / 2].x;
        const float one = shift.share != 0 ? shift.share : exp2Fast(fmaf(p[n][e], factor, shift.shift));
        weight[n][e] = one * keep;
        gradient[n][e] = one * (keep * ds[n][e] - deltas[e / 2]);
      }
    }
  }
};

/// Gradients of hidden scores become 0, and those of keys from `left` (< 58) on, as with hideScores.
__device__ inline void hideGradients(float (&gradient)[8][4], const WgMask<2> &mask, int left) {
  if (mask.hidesAny() || left < 58) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if ((mask.hidesAny() && mask.hides(n, e)) || n * 8 + e % 2 >= left)
          gradient[n][e] = 0;
  }
}

} // namespace shardc::cuda::relative
