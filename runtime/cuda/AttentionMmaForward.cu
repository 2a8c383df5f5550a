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

template <typename T, int kDepth>
__global__ void __launch_bounds__(kMmaThreads, kDepth == 64 ? 4 : 2) attendMma(AttentionWork w) {
  awaitStream();
  constexpr int kTileSize = kColumns * kPitch<kDepth>;
  const int tiles = (w.queries + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  T *q = dynamicShared<T>(), *keys = q + kMmaRows * kPitch<kDepth>; // then two pairs of tiles of k and v
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, rowOfLane = first + warp * 16 + lane / 4;
  const ScoreEffects effects(w, b, h);
  auto begin = [&](int tile, T *to) {
    copyRows<T, kDepth, kColumns>(to, w.k, b, h, tile, w.keys);
    copyRows<T, kDepth, kColumns>(to + kTileSize, w.v, b, h, tile, w.keys);
  };
  copyRows<T, kDepth, kMmaRows>(q, w.q, b, h, first, w.queries);
  begin(0, keys);
  float out[kDepth / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  // Rows beyond the last query compute what nobody reads.
  const int rows[2] = {min(rowOfLane, w.queries - 1), min(rowOfLane + 8, w.queries - 1)};
  for (int tile = 0; tile < w.keys; tile += kColumns) {
    const T *k = keys + tile / kColumns % 2 * 2 * kTileSize, *v = k + kTileSize;
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (tile + kColumns < w.keys)
      begin(tile + kColumns, keys + (tile / kColumns + 1) % 2 * 2 * kTileSize);
    float p[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, q + warp * 16 * kPitch<kDepth>, k);
    float highest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float &one = p[n][2 * half], &two = p[n][2 * half + 1];
        effects.scores(one, two, rows[half], tile + n * 8 + lane % 4 * 2);
        highest[half] = fmaxf(highest[half], fmaxf(one, two));
      }
    float shrink[2], shift[2], added[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float newTop = fmaxf(top[half], rowJoin(highest[half], [](float a, float b) { return fmaxf(a, b); }));
      // A row of -inf gives exponentials of 0 and not NaN.
      shift[half] = newTop == -INFINITY ? 0.0f : newTop;
      shrink[half] = top[half] == -INFINITY ? 0.0f : exp2Fast((top[half] - shift[half]) * kLog2E);
      top[half] = newTop;
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = exp2Fast((p[n][e] - shift[e / 2]) * kLog2E); // of equal ones exactly 1, however large they are
        added[e / 2] += p[n][e];
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = sum[half] * shrink[half] + rowJoin(added[half], Plus());
    if (effects.drops()) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, rows, tile + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          p[n][2 * half] *= keep[half].x, p[n][2 * half + 1] *= keep[half].y;
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

template <int kDepth> constexpr int kBytes = (kMmaRows + 4 * kColumns) * kPitch<kDepth> * 2;

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
