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

/// Of rows of such sums: lse, and what their results are multiplied by.
__device__ inline void finishSums(float (&factor)[2], float (&lse)[2], const float (&shift)[2], const float (&sum)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    factor[half] = sum[half] == 0 ? 0.0f : 1 / sum[half], lse[half] = shift[half] + logf(sum[half]);
}
/// Of the warp's rows, from `first` on.
__device__ inline void storeSums(const AttentionWork &w, int b, int h, int first, const float (&lse)[2]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (const int i = first + lane / 4 + 8 * half; lane % 4 == 0 && i < w.queries)
      store(w.lse, b * w.lseBatch + h * w.lseHead + i, lse[half]);
}

} // namespace shardc::cuda
