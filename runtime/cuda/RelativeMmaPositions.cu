// SPDX-License-Identifier: Apache-2.0
// dpos_key and dpos_query of relative_attention from the gradients of the scores, by warpgroups: a block for a
// head, a diagonal of tiles and a part of the batch, which it sums in registers; then one kernel adds the parts in
// order.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeBand.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {
namespace {

/// Bytes from the start of shared memory: two stages of q and k, the gradients of a tile, their band.
constexpr int kScoresAt = 4 * kWgTile, kBandAt = kScoresAt + 2 * kWgTile, kBytes = kBandAt + kBand;
static_assert(kBytes <= kMostAttentionShared);

/// The tiles of a block: those of its diagonal, for each batch of its part.
struct Walk {
  int h, d, part, firstTile, tiles, offset, b, steps; ///< offset: tile of queries less tile of keys
  __device__ Walk(const AttentionWork &w, const RelativeParts &parts) {
    const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
    h = blockIdx.x % w.heads, d = blockIdx.x / w.heads % parts.diagonals,
    part = blockIdx.x / w.heads / parts.diagonals;
    offset = d - (keyTiles - 1);
    firstTile = max(0, offset);
    tiles = min(queryTiles, keyTiles + offset) - firstTile;
    b = part * parts.each;
    steps = (min(w.batch, b + parts.each) - b) * tiles;
  }
  __device__ int batchOf(int step) const { return b + step / tiles; }
  __device__ int queryOf(int step) const { return (firstTile + step % tiles) * kSide; }
  __device__ int keyOf(int step) const { return queryOf(step) - offset * kSide; }
};

/// The warpgroups have 64 distances of either sum each.
template <typename T>
__global__ void __launch_bounds__(kThreads, 1) sumParts(RelativeWork work, GradientScores scores, float *partials) {
  awaitStream();
  const AttentionWork &w = work.base;
  const RelativeParts parts = partsOf(w);
  const Walk walk(w, parts);
  const int h = walk.h, group = warpgroup();
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  char *shared = alignedShared(), *gradients = shared + kScoresAt, *band = shared + kBandAt;
  auto begin = [&](int step) {
    char *to = shared + step % 2 * 2 * kWgTile;
    copyTile(to, w.q, walk.batchOf(step), h, walk.queryOf(step), w.queries, T());
    copyTile(to + kWgTile, w.k, walk.batchOf(step), h, walk.keyOf(step), w.keys, T());
  };
  auto beginScores = [&](int step) {
    copyScores(gradients, scores, w, walk.batchOf(step), h, walk.queryOf(step), walk.keyOf(step), T());
  };
  if (walk.steps) {
    begin(0);
    beginScores(0);
  }
  clearBand(band);
  float dKey[8][4] = {}, dQuery[8][4] = {};
  for (int step = 0; step < walk.steps; ++step) {
    const char *q = shared + step % 2 * 2 * kWgTile, *k = q + kWgTile;
    waitForCopies();
    showToProducts();
    __syncthreads(); // the tile is there, and the one before is used up
    if (step + 1 < walk.steps)
      begin(step + 1);
    if (toKeys) {
      makeBand<false>(band, gradients);
      showToProducts();
      __syncthreads();
      beginProducts();
      sumDistances<T>(dKey, band, q, group);
      commitProducts();
      waitForProducts<0>();
      pinned(dKey);
    }
    if (toQueries) {
      __syncthreads(); // the band is used up
      makeBand<true>(band, gradients);
      showToProducts();
    }
    __syncthreads(); // so are the gradients
    if (step + 1 < walk.steps)
      beginScores(step + 1);
    if (toQueries) {
      beginProducts();
      sumDistances<T>(dQuery, band, k, group);
      commitProducts();
      waitForProducts<0>();
      pinned(dQuery);
    }
  }
  const int row = threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4;
  if (toKeys)
    storePartial(partials + partialAt(w, parts, walk.part, walk.d, 0, h), row, 1, dKey);
  if (toQueries)
    storePartial(partials + partialAt(w, parts, walk.part, walk.d, 1, h), kDistances - 2 - row, -1, dQuery);
}

constexpr int kJoinRows = 16, kJoinEach = 4;

/// A thread for four elements of a row of a gradient.
template <typename T>
__global__ void __launch_bounds__(kJoinRows *kDepth / kJoinEach)
    joinParts(const __grid_constant__ RelativeWork work, const float *partials) {
  awaitStream();
  const AttentionWork &w = work.base;
  const RelativeParts parts = partsOf(w);
  const PositionsView &to = blockIdx.y ? work.dposQuery : work.dposKey;
  constexpr int kThreadsOfRow = kDepth / kJoinEach;
  const int c = threadIdx.x % kThreadsOfRow * kJoinEach, keyTiles = (w.keys + kSide - 1) / kSide;
  const int row = blockIdx.x * kJoinRows + threadIdx.x / kThreadsOfRow, h = row % w.heads, r = row / w.heads;
  if (!to.data || r >= w.queries + w.keys - 1)
    return;
  float sums[kJoinEach] = {};
  for (int d = 0; d < parts.diagonals; ++d) {
    const int local = r - firstDistance((d - (keyTiles - 1)) * kSide, 0, w.keys);
    if (local < 0 || local >= kDistances - 1)
      continue;
    const float *from = partials + partialAt(w, parts, 0, d, blockIdx.y, h) + local * kDepth + c;
    const long long step = partialAt(w, parts, 1, 0, 0, 0);
#pragma unroll 8
    for (int p = 0; p < parts.parts; ++p) {
      float some[kJoinEach];
      loadPack(from + p * step, some);
#pragma unroll
      for (int e = 0; e < kJoinEach; ++e)
        sums[e] += some[e];
    }
  }
#pragma unroll
  for (float &sum : sums)
    sum *= float(w.scale);
  storePack(static_cast<T *>(to.data) + r * to.row + h * to.head + c, sums);
}

} // namespace

long long gradPositionsScratch(const RelativeWork &w) {
  if (!w.posKey.data && !w.posQuery.data)
    return 0;
  return relativePositionsWorkspace(w.base.batch, w.base.heads, w.base.queries, w.base.keys);
}

cudaError_t prepareGradPositions(const RelativeWork &w) {
  return withType(w, [](auto type) { return allowShared(sumParts<decltype(type)>); });
}

cudaError_t enqueueGradPositions(const RelativeWork &w, const GradientScores &scores, float *partials,
                                 cudaStream_t stream) {
  if (!w.posKey.data && !w.posQuery.data)
    return cudaSuccess;
  const RelativeParts parts = partsOf(w.base);
  const dim3 grid(w.base.heads * parts.diagonals * parts.parts);
  const cudaError_t code = withType(w, [&](auto type) {
    return enqueue(sumParts<decltype(type)>, grid, kThreads, kBytes, stream, w, scores, partials);
  });
  return code == cudaSuccess ? enqueueJoinParts(w, partials, stream) : code;
}

cudaError_t enqueueJoinParts(const RelativeWork &w, const float *partials, cudaStream_t stream) {
  const long long rows = (long long)(w.base.queries + w.base.keys - 1) * w.base.heads;
  return withType(w, [&](auto type) {
    return enqueue(joinParts<decltype(type)>, dim3(blocksFor(rows, kJoinRows), 2), kJoinRows * kDepth / kJoinEach, 0, stream, w,
                   partials);
  });
}

} // namespace shardc::cuda::relative
