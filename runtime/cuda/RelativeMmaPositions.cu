// SPDX-License-Identifier: Apache-2.0
// dpos_key and dpos_query of relative_attention from the gradients of the scores, by the tensor cores: a block for a
// head, a diagonal of tiles and a part of the batch, which it sums in registers; then one kernel adds the parts in order.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {
namespace {

/// How the sum over the batch is cut. Depends on sizes alone, so that bits do too.
struct Parts {
  int diagonals, each, parts; ///< batches a part
  explicit __host__ __device__ Parts(const AttentionWork &w) {
    constexpr int kBlocks = 132;
    const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
    diagonals = queryTiles + keyTiles - 1;
    const int wanted = kBlocks / (w.heads * diagonals);
    each = wanted < 1 ? w.batch : (w.batch + wanted - 1) / wanted;
    parts = (w.batch + each - 1) / each;
  }
};

constexpr int kPartialSize = kDistances * kDepth;

/// Partial of part p, diagonal d, term t (0: keys) and head h.
__device__ inline long long partialAt(const AttentionWork &w, const Parts &parts, int p, int d, int t, int h) {
  return ((((long long)(p)*parts.diagonals + d) * 2 + t) * w.heads + h) * kPartialSize;
}

__device__ inline void storePartial(float *to, const float (&x)[8][4]) {
  const int lane = threadIdx.x % kWarp;
  float *at = to + (threadIdx.x / kWarp * 16 + lane / 4) * kDepth + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    *reinterpret_cast<float2 *>(at + n * 8) = {x[n][0], x[n][1]};
    *reinterpret_cast<float2 *>(at + n * 8 + 8 * kDepth) = {x[n][2], x[n][3]};
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) sumParts(RelativeWork work, GradientScores scores, float *partials) {
  const AttentionWork &w = work.base;
  const Parts parts(w);
  const int h = blockIdx.x % w.heads, d = blockIdx.x / w.heads % parts.diagonals,
            p = blockIdx.x / w.heads / parts.diagonals;
  const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
  const int offset = d - (keyTiles - 1); // tile of queries less tile of keys
  T *q = dynamicShared<T>(), *k = q + kTileSize, *queryBand = k + kTileSize, *keyBand = queryBand + kWideBandSize;
  const int warp = threadIdx.x / kWarp; // owns 16 local rows
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  clearQueryBand(queryBand);
  clearKeyBand(keyBand);
  float dKey[8][4] = {}, dQuery[8][4] = {};
  const int end = min(w.batch, (p + 1) * parts.each);
  for (int b = p * parts.each; b < end; ++b)
    for (int tile = max(0, offset); tile < queryTiles && tile - offset < keyTiles; ++tile) {
      const int i0 = tile * kSide, j0 = (tile - offset) * kSide;
      __syncthreads(); // the tile before is used up
      copyTile(q, w.q, b, h, i0, w.queries);
      copyTile(k, w.k, b, h, j0, w.keys);
      forGradients<T>(scores, w, b, h, i0, j0, [&](int i, int j, const Pack<T, 8> &several) {
#pragma unroll
        for (int l = 0; l < 8; ++l) {
          queryBand[i * kWideBandPitch + queryColumn(i, j + l)] = several.at[l];
          keyBand[(j + l) * kWideBandPitch + keyColumn(i, j + l)] = several.at[l];
        }
      });
      waitForCopies();
      __syncthreads();
      if (toKeys) // blocks of 16 queries that meet the warp's rows
        for (int block = max(0, warp - 8); block <= min(7, warp); ++block)
          multiplyTurned<T, kWideBandPitch>(dKey, queryBand + block * 16 * kWideBandPitch + (warp - block) * 16,
                                            q + block * 16 * kRowPitch, 16);
      if (toQueries)
        for (int block = max(0, 7 - warp); block <= min(7, 15 - warp); ++block)
          multiplyTurned<T, kWideBandPitch>(dQuery, keyBand + block * 16 * kWideBandPitch + (warp - 7 + block) * 16,
                                            k + block * 16 * kRowPitch, 16);
    }
  if (toKeys)
    storePartial(partials + partialAt(w, parts, p, d, 0, h), dKey);
  if (toQueries)
    storePartial(partials + partialAt(w, parts, p, d, 1, h), dQuery);
}

constexpr int kJoinRows = 4;

/// A thread for each element of a gradient.
template <typename T>
__global__ void __launch_bounds__(kJoinRows *kDepth) joinParts(RelativeWork work, const float *partials) {
  const AttentionWork &w = work.base;
  const Parts parts(w);
  const PositionsView &to = blockIdx.y ? work.dposQuery : work.dposKey;
  const int c = threadIdx.x % kDepth, keyTiles = (w.keys + kSide - 1) / kSide;
  const long long row = blockIdx.x * (long long)(kJoinRows) + threadIdx.x / kDepth;
  const int h = row % w.heads, r = row / w.heads;
  if (!to.data || r >= w.queries + w.keys - 1)
    return;
  float sum = 0;
  for (int d = 0; d < parts.diagonals; ++d) {
    const int local = r - firstDistance((d - (keyTiles - 1)) * kSide, 0, w.keys);
    if (local < 0 || local >= kDistances - 1)
      continue;
    for (int p = 0; p < parts.parts; ++p)
      sum += partials[partialAt(w, parts, p, d, blockIdx.y, h) + local * kDepth + c];
  }
  static_cast<T *>(to.data)[r * to.row + h * to.head + c] = narrow<T>(sum * float(w.scale));
}

constexpr int kBytes = (2 * kTileSize + 2 * kWideBandSize) * 2;

template <typename T>
cudaError_t enqueueTyped(const RelativeWork &w, const GradientScores &scores, float *partials, cudaStream_t stream) {
  const Parts parts(w.base);
  const unsigned heads = w.base.heads;
  cudaError_t code = enqueue(sumParts<T>, dim3(heads * parts.diagonals * parts.parts), kThreads, kBytes, stream, w,
                             scores, partials);
  if (code != cudaSuccess)
    return code;
  const long long rows = (long long)(w.base.queries + w.base.keys - 1) * heads;
  return enqueue(joinParts<T>, dim3(blocksFor(rows, kJoinRows), 2), kJoinRows * kDepth, 0, stream, w, partials);
}

} // namespace

long long gradPositionsScratch(const RelativeWork &w) {
  if (!w.posKey.data && !w.posQuery.data)
    return 0;
  const Parts parts(w.base);
  return (long long)(parts.parts) * parts.diagonals * 2 * w.base.heads * kPartialSize * 4;
}

cudaError_t prepareGradPositions(const RelativeWork &w) {
  return takesBf16(w) ? allowShared(sumParts<__nv_bfloat16>) : allowShared(sumParts<__half>);
}

cudaError_t enqueueGradPositions(const RelativeWork &w, const GradientScores &scores, float *partials,
                                 cudaStream_t stream) {
  if (!w.posKey.data && !w.posQuery.data)
    return cudaSuccess;
  return takesBf16(w) ? enqueueTyped<__nv_bfloat16>(w, scores, partials, stream)
                      : enqueueTyped<__half>(w, scores, partials, stream);
}

} // namespace shardc::cuda::relative
