// SPDX-License-Identifier: Apache-2.0
// relative_attention of 16-bit heads of 64 elements by the tensor cores: a block for 128 queries of a head. Two warps
// share 16 queries; each walks over its own 64 keys of every tile with a running softmax, and they join at the end.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda {
namespace relative {
namespace {

/// Over the four lanes that share a row.
template <typename Join> __device__ inline float rowJoin(float x, Join join) {
  x = join(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return join(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// exp(x - top), 0 for a `x` of -inf whatever `top` is.
__device__ inline float shrinkOf(float x, float top) { return x == -INFINITY ? 0.0f : exp2Fast((x - top) * kLog2E); }

/// A warp's running softmax of 16 rows: rows l / 4 and 8 more.
struct Running {
  float out[8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  /// In: scores. Out: what their exponentials are to be multiplied by v.
  __device__ void take(float (&p)[8][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = -INFINITY, added = 0;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        highest = fmaxf(highest, fmaxf(p[n][2 * half], p[n][2 * half + 1]));
      const float newTop = fmaxf(top[half], rowJoin(highest, [](float a, float b) { return fmaxf(a, b); }));
      // A row of -inf gives exponentials of 0 and not NaN.
      const float shift = newTop == -INFINITY ? 0.0f : newTop, shrink = shrinkOf(top[half], shift);
      top[half] = newTop;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          p[n][e] = exp2Fast((p[n][e] - shift) * kLog2E); // of equal ones exactly 1, however large they are
          added += p[n][e];
          out[n][e] *= shrink;
        }
      sum[half] = sum[half] * shrink + rowJoin(added, Plus());
    }
  }
  /// To and from `room`, for the other warp of the rows.
  __device__ void leave(float *room) const {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        room[(n * 4 + e) * kWarp + lane] = out[n][e];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      room[(32 + half) * kWarp + lane] = top[half];
      room[(34 + half) * kWarp + lane] = sum[half];
    }
  }
  __device__ void join(const float *room) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float otherTop = room[(32 + half) * kWarp + lane], both = fmaxf(top[half], otherTop);
      const float shift = both == -INFINITY ? 0.0f : both;
      const float mine = shrinkOf(top[half], shift), other = shrinkOf(otherTop, shift);
      top[half] = both;
      sum[half] = sum[half] * mine + room[(34 + half) * kWarp + lane] * other;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          out[n][e] = out[n][e] * mine + room[(n * 4 + e) * kWarp + lane] * other;
    }
  }
};
static_assert(36 * kWarp <= kBandSize);

template <typename T> __global__ void __launch_bounds__(kThreads, 1) attend(RelativeWork work) {
  const AttentionWork &w = work.base;
  const int tiles = (w.queries + kSide - 1) / kSide, rows = w.queries + w.keys - 1;
  const int i0 = blockIdx.x % tiles * kSide, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  T *q = dynamicShared<T>(), *k = q + kTileSize, *v = k + kTileSize;
  T *posKey = v + kTileSize, *posQuery = posKey + kDistancesSize;
  float *bands = reinterpret_cast<float *>(posQuery + kDistancesSize);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, half = warp % 2 * 64;
  const int rowOfLane = i0 + warp / 2 * 16 + lane / 4;
  // Rows beyond the last query compute what nobody reads.
  const int queries[2] = {min(rowOfLane, w.queries - 1), min(rowOfLane + 8, w.queries - 1)};
  const ScoreEffects effects(w, b, h);
  Running running;
  copyTile(q, w.q, b, h, i0, w.queries);
  for (int j0 = 0; j0 < w.keys; j0 += kSide) {
    if (j0)
      __syncthreads(); // the tile before is used up
    const int first = firstDistance(i0, j0, w.keys);
    copyTile(k, w.k, b, h, j0, w.keys);
    if (work.posQuery.data)
      copyDistances(posQuery, work.posQuery, h, first, rows);
    closeGroup();
    if (work.posKey.data)
      copyDistances(posKey, work.posKey, h, first, rows);
    copyTile(v, w.v, b, h, j0, w.keys);
    closeGroup();
    waitForGroups<1>();
    __syncthreads();
    float p[8][4];
    scoresOfTile<T>(p, q, k, work.posKey.data ? posKey : nullptr, work.posQuery.data ? posQuery : nullptr, bands);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int side = 0; side < 2; ++side)
        effects.scores(p[n][2 * side], p[n][2 * side + 1], queries[side], j0 + half + n * 8 + lane % 4 * 2);
    running.take(p);
    if (effects.drops()) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, queries, j0 + half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side)
          p[n][2 * side] *= keep[side].x, p[n][2 * side + 1] *= keep[side].y;
      }
    }
    multiplyColumns<T, kDepth>(running.out, p, v + half * kRowPitch);
  }
  __syncthreads();
  if (half)
    running.leave(bands + warp * kBandSize);
  __syncthreads();
  if (half)
    return;
  running.join(bands + (warp + 1) * kBandSize);
  float factor[2];
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int i = rowOfLane + side * 8;
    const float sum = running.sum[side], top = running.top[side];
    factor[side] = sum == 0 ? 0.0f : 1 / sum;
    if (lane % 4 == 0 && i < w.queries)
      store(w.lse, b * w.lseBatch + h * w.lseHead + i, (top == -INFINITY ? 0.0f : top) + logf(sum));
  }
  storeRows<T, kDepth>(w.out, b, h, i0 + warp / 2 * 16, w.queries, running.out, factor);
}

constexpr int kBytes = (3 * kTileSize + 2 * kDistancesSize) * 2 + kBandBytes;
static_assert(kBytes <= kMostAttentionShared);

} // namespace
} // namespace relative

cudaError_t prepareRelativeMma(const RelativeWork &w) {
  using namespace relative;
  return takesBf16(w) ? allowShared(attend<__nv_bfloat16>) : allowShared(attend<__half>);
}

cudaError_t enqueueRelativeMma(const RelativeWork &w, void *, cudaStream_t stream) {
  using namespace relative;
  const dim3 grid(unsigned(w.base.batch) * w.base.heads * tilesOf(w.base.queries));
  return takesBf16(w) ? enqueue(attend<__nv_bfloat16>, grid, kThreads, kBytes, stream, w)
                      : enqueue(attend<__half>, grid, kThreads, kBytes, stream, w);
}

} // namespace shardc::cuda
