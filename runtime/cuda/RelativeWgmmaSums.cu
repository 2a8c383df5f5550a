// SPDX-License-Identifier: Apache-2.0
// The rest of the gradient of relative_attention by warpgroups where one tile has all of a head: dq, dk and
// what the batches of a block add to dpos_key and dpos_query, from the gradients of the scores. A block for a
// head and a part of the batch.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeBand.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {
namespace {

/// Bytes: two stages of q and k, the gradients of a tile, their band, the positions, barriers.
constexpr int kStage = 2 * kWgTile, kScoresAt = 2 * kStage, kBandAt = kScoresAt + 2 * kWgTile,
              kPosKeyAt = kBandAt + kBand, kPosQueryAt = kPosKeyAt + kDistancesTile,
              kBarriersAt = kPosQueryAt + kDistancesTile, kBytes = kBarriersAt + 64;
static_assert(kBytes <= kMostAttentionShared);

struct TileMaps {
  CUtensorMap q, k, dq, dk, scores;
};

/// A warpgroup has 64 distances of both sums; and 64 rows of dq (kQueries: warpgroups 0 and 3) or of dk (1
/// and 2).
template <typename T, bool kQueries>
__device__ inline void walkBatches(const RelativeWork &work, const TileMaps &maps, float *partials) {
  const AttentionWork &w = work.base;
  const RelativeParts parts = partsOf(w);
  const int h = blockIdx.x % w.heads, part = blockIdx.x / w.heads, begin = part * parts.each,
            end = min(w.batch, begin + parts.each);
  const int group = warpgroup(), half = group / 2;
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data, leads = threadIdx.x == 0;
  char *shared = alignedShared(), *gradients = shared + kScoresAt, *band = shared + kBandAt;
  uint64_t *rowsArrived = reinterpret_cast<uint64_t *>(shared + kBarriersAt),
           *scoresArrived = rowsArrived + 1;
  auto beginRows = [&](int b) { // one thread, as the next
    char *to = shared + (b - begin) % 2 * kStage;
    expectBytes(rowsArrived, kStage);
    loadTile(to, maps.q, 0, h, b, rowsArrived);
    loadTile(to + kWgTile, maps.k, 0, h, b, rowsArrived);
  };
  auto beginScores = [&](int b) {
    expectBytes(scoresArrived, 2 * kWgTile);
    loadTile(gradients, maps.scores, 0, h, b, scoresArrived);
    loadTile(gradients + kWgTile, maps.scores, 0, h, b, scoresArrived, 64);
  };
  if (leads) {
    beginArrivals(rowsArrived);
    beginArrivals(scoresArrived);
    beginRows(begin);
    beginScores(begin);
  }
  const int first = firstDistance(0, 0, w.keys), distances = w.queries + w.keys - 1;
  copyDistances(shared + kPosKeyAt, work.posKey, h, first, distances, T());
  copyDistancesBack(shared + kPosQueryAt, work.posQuery, h, first, distances, T());
  clearBand(band);
  waitForCopies();
  float dKey[8][4] = {}, dQuery[8][4] = {}, x[8][4];
  meet(1, kThreads);
  for (int b = begin; b < end; ++b) {
    const bool goesOn = b + 1 < end;
    char *q = shared + (b - begin) % 2 * kStage, *k = q + kWgTile;
    waitForBytes(rowsArrived, b - begin);
    waitForBytes(scoresArrived, b - begin);
    beginProducts();
    multiplyGradients<T, !kQueries>(x, gradients, kQueries ? k : q, half, false);
    commitProducts();
    if (toKeys) {
      makeBand<false>(band, gradients);
      showToProducts();
      meet(1, kThreads); // the band is there
      beginProducts();
      if (kQueries)
        addDistances<T>(x, band, shared + kPosKeyAt, half);
      sumDistances<T, kQueries>(dKey, band, q, group);
      commitProducts();
    }
    waitForProducts<0>();
    pinned(x);
    pinned(dKey);
    meet(1, kThreads); // the band is used up
    if (leads && goesOn) {
      waitForStores();
      beginRows(b + 1);
    }
    if (toQueries) {
      makeBand<true>(band, gradients);
      showToProducts();
      meet(1, kThreads); // the band is there
    }
    if (leads && goesOn)
      beginScores(b + 1);
    if (toQueries) {
      beginProducts();
      if (!kQueries)
        addDistances<T>(x, band, shared + kPosQueryAt, half);
      sumDistances<T, kQueries>(dQuery, band, k, group);
      commitProducts();
      waitForProducts<0>();
      pinned(x);
      pinned(dQuery);
    }
    meet(1, kThreads); // q and k are used up, and the band
    const float factors[2] = {float(w.scale), float(w.scale)};
    uint32_t packed[4][4];
    packRows<T>(packed, x, factors);
    keepPacked((kQueries ? q : k) + half * kHalfTile, packed);
    showToProducts();
    meet(1, kThreads);
    if (leads) {
      storeTile(maps.dq, q, 0, h, b);
      storeTile(maps.dk, k, 0, h, b);
      commitStores();
    }
  }
  const int row = threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4;
  if (toKeys)
    storePartial(partials + partialAt(w, parts, part, 0, 0, h), row, 1, dKey);
  if (toQueries)
    storePartial(partials + partialAt(w, parts, part, 0, 1, h), kDistances - 2 - row, -1, dQuery);
  if (leads)
    waitForStores();
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    sumTile(const __grid_constant__ RelativeWork work, const __grid_constant__ TileMaps maps,
            float *partials) {
  awaitStream();
  const int group = warpgroup();
  if (group == 0 || group == 3)
    walkBatches<T, true>(work, maps, partials);
  else
    walkBatches<T, false>(work, maps, partials);
}

} // namespace

cudaError_t prepareTileSums(const RelativeWork &w) {
  return withType(w, [](auto type) { return allowShared(sumTile<decltype(type)>); });
}

cudaError_t enqueueTileSums(const RelativeWork &w, const GradientScores &scores, float *partials,
                            cudaStream_t stream) {
  const AttentionWork &a = w.base;
  TileMaps maps;
  cudaError_t code = describeRows(a, {{maps.q, a.q, a.queries, kWgRows},
                                      {maps.k, a.k, a.keys, kWgRows},
                                      {maps.dq, a.dq, a.queries, kWgRows},
                                      {maps.dk, a.dk, a.keys, kWgRows},
                                      {maps.scores, scores.heads(a), a.queries, kWgRows, scores.pitch}});
  if (code != cudaSuccess)
    return code;
  const dim3 grid(a.heads * partsOf(a).parts);
  code = withType(w, [&](auto type) {
    return enqueue(sumTile<decltype(type)>, grid, kThreads, kBytes, stream, w, maps, partials);
  });
  const bool any = w.posKey.data || w.posQuery.data;
  return code == cudaSuccess && any ? enqueueJoinParts(w, partials, stream) : code;
}

} // namespace shardc::cuda::relative
