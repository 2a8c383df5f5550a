// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit heads of 64 or 128 elements by the tensor cores: a block for 64 queries of a head, which walks
// over the keys in tiles of 64 with a running softmax. Probabilities are rounded to 16 bits for their product with v.
#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

constexpr int kColumns = 64, kBlocks = kColumns / 8;

/// Over the four lanes that share a row.
template <typename Join> __device__ inline float rowJoin(float x, Join join) {
  x = join(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return join(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

template <typename T, int kDepth> __global__ void __launch_bounds__(kMmaThreads) attendMma(AttentionWork w) {
  const int tiles = (w.queries + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  T *q = dynamicShared<T>(), *k = q + kMmaRows * kPitch<kDepth>, *v = k + kColumns * kPitch<kDepth>;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, rowOfLane = first + warp * 16 + lane / 4;
  const ScoreEffects effects(w, b, h);
  loadRows<T, kDepth, kMmaRows>(q, w.q, b, h, first, w.queries);
  float out[kDepth / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int begin = 0; begin < w.keys; begin += kColumns) {
    if (begin)
      __syncthreads(); // the tiles before are used up
    loadRows<T, kDepth, kColumns>(k, w.k, b, h, begin, w.keys);
    loadRows<T, kDepth, kColumns>(v, w.v, b, h, begin, w.keys);
    __syncthreads();
    float p[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, q + warp * 16 * kPitch<kDepth>, k);
    float highest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = rowOfLane + e / 2 * 8, j = begin + n * 8 + lane % 4 * 2 + e % 2;
        p[n][e] = i < w.queries && j < w.keys ? effects.score(p[n][e], i, j) : -INFINITY;
        highest[e / 2] = fmaxf(highest[e / 2], p[n][e]);
      }
    float shrink[2], finite[2], added[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float newTop = fmaxf(top[half], rowJoin(highest[half], [](float a, float b) { return fmaxf(a, b); }));
      // A row of -inf gives exponentials of 0 and not NaN.
      finite[half] = newTop == -INFINITY ? 0.0f : newTop;
      shrink[half] = top[half] == -INFINITY ? 0.0f : __expf(top[half] - finite[half]);
      top[half] = newTop;
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = __expf(p[n][e] - finite[e / 2]);
        added[e / 2] += p[n][e];
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = sum[half] * shrink[half] + rowJoin(added[half], Plus());
    if (effects.drops()) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 keep = effects.keepPair(rowOfLane + half * 8, begin + n * 8 + lane % 4 * 2);
          p[n][2 * half] *= keep.x, p[n][2 * half + 1] *= keep.y;
        }
    }
#pragma unroll
    for (int n = 0; n < kDepth / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        out[n][e] *= shrink[e / 2];
    multiplyColumns<T, kDepth>(out, p, v);
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = rowOfLane + half * 8;
    factor[half] = sum[half] == 0 ? 0.0f : 1 / sum[half];
    if (lane % 4 == 0 && i < w.queries)
      store(w.lse, b * w.lseBatch + h * w.lseHead + i, (top[half] == -INFINITY ? 0.0f : top[half]) + logf(sum[half]));
  }
  storeRows<T, kDepth>(w.out, b, h, first + warp * 16, w.queries, out, factor);
}

template <int kDepth> constexpr int kBytes = (kMmaRows + 2 * kColumns) * kPitch<kDepth> * 2;

} // namespace

cudaError_t prepareAttentionMma(const AttentionWork &w) {
  return withMma(w,
                 [&](auto type, auto depth) { return allowShared(attendMma<decltype(type), decltype(depth)::value>); });
}

cudaError_t enqueueAttentionMma(const AttentionWork &w, void *, cudaStream_t stream) {
  return withMma(w, [&](auto type, auto depth) {
    constexpr int kDepth = decltype(depth)::value;
    const dim3 grid(unsigned(w.batch) * w.heads * blocksFor(w.queries, kMmaRows));
    return enqueue(attendMma<decltype(type), kDepth>, grid, kMmaThreads, kBytes<kDepth>, stream, w);
  });
}

} // namespace shardc::cuda
