// SPDX-License-Identifier: Apache-2.0
// dpos_key and dpos_query of relative_attention from the gradients of the scores, by the tensor cores: a block for a
// head, a diagonal of tiles and a part of the batch, which it sums in registers; then one kernel adds the parts in order.
// Where one tile holds all keys, the block makes dq on its way.
#include "ir/base/Workspace.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {
namespace {

using Parts = RelativeParts;
__host__ __device__ inline Parts partsOf(const AttentionWork &w) { return relativeParts(w.batch, w.heads, w.queries, w.keys); }

constexpr int kPartialSize = kDistances * kDepth;
static_assert(kPartialSize * sizeof(float) == kRelativeSumBytes && kSide == kAttentionRows);

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

/// The tiles of a block: those of its diagonal, for each batch of its part.
struct Walk {
  int h, d, part, firstTile, tiles, offset, b, end; ///< offset: tile of queries less tile of keys
  __device__ Walk(const AttentionWork &w, const Parts &parts) {
    const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
    h = blockIdx.x % w.heads, d = blockIdx.x / w.heads % parts.diagonals, part = blockIdx.x / w.heads / parts.diagonals;
    offset = d - (keyTiles - 1);
    firstTile = max(0, offset);
    tiles = min(queryTiles, keyTiles + offset) - firstTile;
    b = part * parts.each;
    end = min(w.batch, b + parts.each);
  }
};

template <typename T, bool kMakesQueries>
__global__ void __launch_bounds__(kThreads, 1) sumParts(RelativeWork work, GradientScores scores, float *partials) {
  const AttentionWork &w = work.base;
  const Parts parts = partsOf(w);
  const Walk walk(w, parts);
  const int h = walk.h;
  const Place<T> stages = Place<T>::first(), gradients = stages + 4 * kTileSize; // two pairs of tiles of q and k
  const Place<T> queryBand = gradients + kScoresSize, keyBand = queryBand + kWideBandSize,
                 posKey = keyBand + kWideBandSize;
  const Share share;
  const int warp = share.warp; // owns 16 local rows
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  const int steps = (walk.end - walk.b) * walk.tiles;
  auto batchOf = [&](int step) { return walk.b + step / walk.tiles; };
  auto queryOf = [&](int step) { return (walk.firstTile + step % walk.tiles) * kSide; };
  auto begin = [&](int step) {
    const Place<T> to = stages + step % 2 * 2 * kTileSize;
    copyTile(to, w.q, batchOf(step), h, queryOf(step), w.queries);
    copyTile(to + kTileSize, w.k, batchOf(step), h, queryOf(step) - walk.offset * kSide, w.keys);
  };
  auto beginScores = [&](int step) {
    copyScores(gradients, scores, w, batchOf(step), h, queryOf(step), queryOf(step) - walk.offset * kSide);
  };
  if (steps) {
    begin(0);
    beginScores(0);
  }
  if (kMakesQueries && toKeys)
    copyDistances(posKey, work.posKey, h, firstDistance(walk.offset * kSide, 0, w.keys), w.queries + w.keys - 1);
  clearQueryBand(queryBand.data);
  clearKeyBand(keyBand.data);
  float dKey[8][4] = {}, dQuery[8][4] = {};
  for (int step = 0; step < steps; ++step) {
    const Place<T> q = stages + step % 2 * 2 * kTileSize, k = q + kTileSize;
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (step + 1 < steps)
      begin(step + 1);
    forGradients(gradients.data, [&](int i, int j, const Pack<T, 8> &several) {
      T *ofQuery = queryBand.data + i * kWideBandPitch + queryColumn(i, j);
      T *ofKey = keyBand.data + j * kWideBandPitch + keyColumn(i, j);
#pragma unroll
      for (int l = 0; l < 8; ++l) {
        ofQuery[-l] = several.at[l];
        ofKey[l * (kWideBandPitch - 1)] = several.at[l];
      }
    });
    __syncthreads();
    if (kMakesQueries) {
      float dq[4][4] = {};
      const int column = warp % 2 * 32;
      addQueryGradient(dq, share, column, gradients, k, queryBand, posKey, toKeys);
      storePart<T>(w.dq, batchOf(step), h, queryOf(step) + share.own, w.queries, column, dq, float(w.scale),
                   float(w.scale));
      __syncthreads();
    }
    if (step + 1 < steps)
      beginScores(step + 1);
    if (toKeys) // blocks of 16 queries that meet the warp's rows
      for (int block = max(0, warp - 8); block <= min(7, warp); ++block)
        multiplyTurned<T, kWideBandPitch, 16>(dKey, queryBand + (block * 16 * kWideBandPitch + (warp - block) * 16),
                                              q + block * 16 * kRowPitch);
    if (toQueries)
      for (int block = max(0, 7 - warp); block <= min(7, 15 - warp); ++block)
        multiplyTurned<T, kWideBandPitch, 16>(dQuery, keyBand + (block * 16 * kWideBandPitch + (warp - 7 + block) * 16),
                                              k + block * 16 * kRowPitch);
  }
  if (toKeys)
    storePartial(partials + partialAt(w, parts, walk.part, walk.d, 0, h), dKey);
  if (toQueries)
    storePartial(partials + partialAt(w, parts, walk.part, walk.d, 1, h), dQuery);
}

constexpr int kJoinRows = 4;

/// A thread for each element of a gradient.
template <typename T>
__global__ void __launch_bounds__(kJoinRows *kDepth) joinParts(RelativeWork work, const float *partials) {
  const AttentionWork &w = work.base;
  const Parts parts = partsOf(w);
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

constexpr int kBytes = (4 * kTileSize + kScoresSize + 2 * kWideBandSize + kDistancesSize) * 2;
static_assert(kBytes <= kMostAttentionShared);

} // namespace

long long gradPositionsScratch(const RelativeWork &w) {
  if (!w.posKey.data && !w.posQuery.data)
    return 0;
  return relativePositionsWorkspace(w.base.batch, w.base.heads, w.base.queries, w.base.keys);
}

cudaError_t prepareGradPositions(const RelativeWork &w) {
  return withType(w, [](auto type) {
    const cudaError_t code = allowShared(sumParts<decltype(type), false>);
    return code == cudaSuccess ? allowShared(sumParts<decltype(type), true>) : code;
  });
}

cudaError_t enqueueGradPositions(const RelativeWork &w, const GradientScores &scores, float *partials,
                                 cudaStream_t stream) {
  if (!w.posKey.data && !w.posQuery.data)
    return cudaSuccess;
  const Parts parts = partsOf(w.base);
  const unsigned heads = w.base.heads;
  const long long rows = (long long)(w.base.queries + w.base.keys - 1) * heads;
  return withType(w, [&](auto type) {
    using T = decltype(type);
    const cudaError_t code =
        enqueue(queriesWithPositions(w) ? sumParts<T, true> : sumParts<T, false>,
                dim3(heads * parts.diagonals * parts.parts), kThreads, kBytes, stream, w, scores, partials);
    if (code != cudaSuccess)
      return code;
    return enqueue(joinParts<T>, dim3(blocksFor(rows, kJoinRows), 2), kJoinRows * kDepth, 0, stream, w, partials);
  });
}

} // namespace shardc::cuda::relative
