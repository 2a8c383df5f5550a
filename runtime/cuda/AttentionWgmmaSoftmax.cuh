// SPDX-License-Identifier: Apache-2.0
// Softmax of rows of 128 scores that a warpgroup holds as accumulators: the parts that the forward kernels share.
#pragma once

#include "runtime/cuda/AttentionWgmma.cuh"

namespace shardc::cuda {

/// Of rows l / 4 + 8 half.
__device__ inline float highestOf(const float (&p)[kWgBlocks][4], int half) {
  float highest = -INFINITY, other = -INFINITY; // two chains
#pragma unroll
  for (int n = 0; n < kWgBlocks; ++n)
    highest = fmaxf(highest, p[n][2 * half]), other = fmaxf(other, p[n][2 * half + 1]);
  return quadJoin(fmaxf(highest, other), [](float a, float b) { return fmaxf(a, b); });
}

/// p = exp(p - shift), and the sums of its rows.
__device__ inline void makeExponentials(float (&p)[kWgBlocks][4], const float (&shift)[2], float (&sum)[2]) {
  float factor[2] = {-shift[0] * kLog2E, -shift[1] * kLog2E};
  // Of equal scores the exponentials are 1, however large they are.
  if (__any_sync(0xffffffffu, fmaxf(fabsf(shift[0]), fabsf(shift[1])) > 4096)) {
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        p[n][e] -= shift[e / 2];
    factor[0] = factor[1] = 0;
  }
  float more[2] = {0, 0}; // two chains a row
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      p[n][2 * half] = exp2Fast(fmaf(p[n][2 * half], kLog2E, factor[half]));
      p[n][2 * half + 1] = exp2Fast(fmaf(p[n][2 * half + 1], kLog2E, factor[half]));
      sum[half] += p[n][2 * half], more[half] += p[n][2 * half + 1];
    }
  sum[0] = quadJoin(sum[0] + more[0], Plus()), sum[1] = quadJoin(sum[1] + more[1], Plus());
}

__device__ inline void dropSome(float (&p)[kWgBlocks][4], const AttentionWork &w, int b, int h, const int (&rows)[2],
                                int firstKey) {
  const ScoreEffects effects(w, b, h);
#pragma unroll
  for (int n = 0; n < kWgBlocks; ++n) {
    float2 keep[2];
    effects.keepPairs(keep, rows, firstKey + n * 8 + threadIdx.x % 4 * 2);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      p[n][2 * half] *= keep[half].x, p[n][2 * half + 1] *= keep[half].y;
  }
}

/// Rounded, as the left side of a product.
template <typename T>
__device__ inline void packScores(uint32_t (&to)[kWgBlocks / 2][4], const float (&p)[kWgBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kWgBlocks; n += 2)
#pragma unroll
    for (int m = 0; m < 4; ++m)
      to[n / 2][m] = packPair(p[n + m / 2][m % 2 * 2], p[n + m / 2][m % 2 * 2 + 1], T());
}

/// out / sum, rounded, to the warpgroup's rows at `to` of a tile; lse of the warp's rows.
template <typename T>
__device__ inline void finishRows(char *to, float (&out)[8][4], const AttentionWork &w, int b, int h, int rowOfWarp,
                                  const float (&shift)[2], const float (&sum)[2]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = rowOfWarp + lane / 4 + 8 * half;
    const float factor = sum[half] == 0 ? 0.0f : 1 / sum[half];
    if (lane % 4 == 0 && i < w.queries)
      store(w.lse, b * w.lseBatch + h * w.lseHead + i, shift[half] + logf(sum[half]));
#pragma unroll
    for (int n = 0; n < 8; ++n)
      out[n][2 * half] *= factor, out[n][2 * half + 1] *= factor;
  }
  keepTile<T>(to, out);
}

} // namespace shardc::cuda
