// SPDX-License-Identifier: Apache-2.0
// What the kernels of relative_attention share where one tile of 128 queries and 128 keys has all of a head:
// two warpgroups work at a head of one batch, the other two at that of the next, so that one pair is busy
// while the other waits. Each warpgroup has 64 queries, and goes over 64 keys at a time.
//
// As in RelativeScores.cuh queries and keys meet at 255 distances, and lanes exchange what they hold of the
// bands. Here keys lie in order: a lane holds x[n][e] = query l / 4 + 8 (e / 2), key 8 n + 2 (l % 4) + e % 2
// of its warp's.
#pragma once

#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {

constexpr int kPair = 2 * kWarpgroup; ///< threads

/// What a warp computes of a tile of scores: 16 queries from `own` and 64 keys from `half` on; a warpgroup 64
/// queries from `group` on.
struct Part {
  int own, group, half;
};

/// x = a b^T of 64 rows with 8 N, which begin at `a` and `b`.
template <typename T, int N>
__device__ inline void beginRows(float (&x)[N][4], const char *a, const char *b) {
  const uint64_t left = matrixAt(a), right = matrixAt(b);
#pragma unroll
  for (int d = 0; d < 4; ++d)
    multiply<T, false, false>(x, further(left, d * 32), further(right, d * 32), d > 0);
}
template <typename T, int N>
__device__ inline void multiplyRows(float (&x)[N][4], const char *a, const char *b) {
  beginProducts();
  beginRows<T>(x, a, b);
  commitProducts();
  waitForProducts<0>();
  pinned(x);
}

/// k posQuery^T.
template <typename T>
__device__ inline void makeKeyTerms(Terms &terms, const Part &part, const char *k, const char *posQuery) {
  const int lane = threadIdx.x % kWarp, r = lane / 4, c = lane % 4;
  // Of its 16 queries, a warp's keys 16 m and on meet 31 distances, in two blocks of 16; the upper one is the
  // lower of m - 1. The warpgroup's lower blocks lie beside each other, from here - 16 m on.
  const char *keys = k + part.half * 128, *distances = posQuery + (part.group - part.half + kSide - 16) * 128;
  float highest[2][4], both[3][4][4], lowest[2][4]; // both: a lower one, and the upper one of the next keys
  auto exchange = [&](int m, const float(&lower0)[4], const float(&lower1)[4], const float(&upper0)[4],
                      const float(&upper1)[4]) {
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      // Query row 8 s + r and key column 8 e + 2 c + t meet at row 8 (1 + s - e) + (7 + r - 2 c - t) of
      // the 32.
      const bool further = r + 2 * c + t < 7; // of the lane that it goes to, the latter is above 7
      const int from = (7 + r - 2 * c - t) % 8 * 4 + c;
      const uint32_t one = packPair(lower0[2 + t], lower1[t], T()),
                     two = packPair(upper0[t], lower1[2 + t], T()),
                     three = packPair(upper0[2 + t], upper1[t], T());
      terms[m][t] = __shfl_sync(0xffffffffu, further ? two : one, from);
      terms[m][2 + t] = __shfl_sync(0xffffffffu, further ? three : two, from);
    }
  };
  beginProducts();
  beginRows<T>(highest, distances + 16 * 128, keys);
  beginRows<T>(both[0], distances, keys);
  commitProducts();
#pragma unroll
  for (int m = 0; m < 3; ++m) {
    if (m < 2)
      beginRows<T>(both[m + 1], distances - (m + 1) * 16 * 128, keys + (m + 1) * 16 * 128);
    else
      beginRows<T>(lowest, distances - 3 * 16 * 128, keys + 3 * 16 * 128);
    commitProducts();
    waitForProducts<1>();
    pinned(both[m]);
    if (m == 0) {
      pinned(highest);
      exchange(0, both[0][0], both[0][1], highest[0], highest[1]);
    } else {
      exchange(m, both[m][0], both[m][1], both[m - 1][2], both[m - 1][3]);
    }
  }
  waitForProducts<0>();
  pinned(lowest);
  exchange(3, lowest[0], lowest[1], both[2][2], both[2][3]);
}

template <typename T> __device__ inline void addTerms(float (&x)[8][4], const Terms &terms) {
#pragma unroll
  for (int m = 0; m < 4; ++m)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      addPair<T>(x[2 * m][e], x[2 * m + 1][e], terms[m][e]);
}

/// Products of tiles in shared memory and their terms, where the positions are there: posKey and posQuery
/// have kDistances rows. The warpgroup calls.
template <typename T>
__device__ inline void makeProducts(float (&x)[8][4], const Part &part, const char *q, const char *k,
                                    const char *posKey, const char *posQuery, bool toKeys, bool toQueries) {
  Terms ofKeys = {}, ofQueries = {};
  if (toQueries)
    makeKeyTerms<T>(ofKeys, part, k, posQuery);
  if (toKeys) {
    uint32_t rows[4][4];
    loadRows(rows, q, part.own);
    makeQueryTerms<T>(ofQueries, part.own, part.half, rows, posKey);
  }
  multiplyRows<T>(x, q + part.group * 128, k + part.half * 128);
  addTerms<T>(x, ofKeys);
  addTerms<T>(x, ofQueries);
}

/// The positions as arrays of tiles of kDistances rows.
struct PositionMaps {
  CUtensorMap key, query;
};
inline cudaError_t describe(PositionMaps &maps, const RelativeWork &w) {
  AttentionWork one = w.base;
  one.batch = 1;
  for (bool key : {true, false}) {
    const PositionsView &view = key ? w.posKey : w.posQuery;
    if (!view.data)
      continue;
    const HeadsView rows = {view.data, 0, view.row, view.head};
    const cudaError_t code =
        describeRows(key ? maps.key : maps.query, one, rows, w.base.queries + w.base.keys - 1, kDistances);
    if (code != cudaSuccess)
      return code;
  }
  return cudaSuccess;
}
/// One thread: the distances of head `h` that the tile meets.
__device__ inline void beginPositions(const RelativeWork &work, const PositionMaps &maps, int h, char *posKey,
                                      char *posQuery, uint64_t *arrived) {
  const int first = firstDistance(0, 0, work.base.keys);
  expectBytes(arrived, (bool(work.posKey.data) + bool(work.posQuery.data)) * kDistancesTile);
  if (work.posKey.data)
    loadTile(posKey, maps.key, first, h, 0, arrived);
  if (work.posQuery.data)
    loadTile(posQuery, maps.query, first, h, 0, arrived);
}

/// A pair at its work: batches first, first + 2, ... of a head. The block's shared memory has kTiles tiles
/// for each pair, then the positions and barriers.
template <int kTiles> struct PairWork {
  static constexpr int kPosKeyAt = 2 * kTiles * kWgTile, kPosQueryAt = kPosKeyAt + kDistancesTile,
                       kBarriersAt = kPosQueryAt + kDistancesTile, kBytes = kBarriersAt + 64;
  static_assert(kBytes <= kMostAttentionShared);

  int pair, head, first, end;
  bool leads; ///< the thread that begins the pair's copies
  char *tiles, *posKey, *posQuery;
  uint64_t *positionsArrived, *scoresArrived, *othersArrived; ///< positions: of the block

  __device__ PairWork(const AttentionWork &w, int chunks) {
    const WgWork block(w, chunks);
    pair = warpgroup() / 2, head = block.head, first = block.begin + pair, end = block.end;
    leads = threadIdx.x % kPair == 0;
    char *shared = alignedShared();
    tiles = shared + pair * kTiles * kWgTile, posKey = shared + kPosKeyAt, posQuery = shared + kPosQueryAt;
    positionsArrived = reinterpret_cast<uint64_t *>(shared + kBarriersAt);
    scoresArrived = positionsArrived + 1 + pair, othersArrived = positionsArrived + 3 + pair;
  }
  /// The whole block calls; `begin(first)`, where there is one, by the pair's leader. Leaves: the positions
  /// are there.
  template <typename F>
  __device__ void start(const RelativeWork &work, const PositionMaps &positions, F begin) const {
    if (leads) {
      if (pair == 0)
        beginArrivals(positionsArrived);
      beginArrivals(scoresArrived);
      beginArrivals(othersArrived);
    }
    __syncthreads();
    if (leads && pair == 0)
      beginPositions(work, positions, head, posKey, posQuery, positionsArrived);
    if (leads && first < end)
      begin(first);
    waitForBytes(positionsArrived, 0);
  }
  __device__ void meetPair() const { meet(1 + pair, kPair); }
};

} // namespace shardc::cuda::relative
