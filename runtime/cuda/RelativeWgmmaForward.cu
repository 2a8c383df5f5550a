// SPDX-License-Identifier: Apache-2.0
// relative_attention of 16-bit heads of 64 elements by warpgroups where one tile has all of a head
// (RelativeWgmma.cuh): a block for a head and some batches.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeWgmma.cuh"

namespace shardc::cuda::relative {
namespace {

/// Of 16 rows of a warp: rows l / 4 and 8 more. Scores are products, still to be multiplied by `factor` =
/// scale log2(e).
struct Softmax {
  float top[2], sum[2];

  /// In: products. Out: what their exponentials are to be multiplied by v; and by what all before is to be
  /// multiplied.
  __device__ void take(float (&p)[8][4], float (&shrink)[2], float factor, bool first) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float highest = first ? -INFINITY : top[side], added = 0;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        highest = fmaxf(highest, fmaxf(p[n][2 * side], p[n][2 * side + 1]));
      highest = quadJoin(highest, [](float a, float b) { return fmaxf(a, b); });
      // A row of -inf gives exponentials of 0 and not NaN.
      const float shift = highest == -INFINITY ? 0.0f : -highest * factor;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 2 * side; e < 2 * side + 2; ++e) {
          p[n][e] = exp2Fast(fmaf(p[n][e], factor, shift));
          added += p[n][e];
        }
      added = quadJoin(added, Plus());
      shrink[side] = first || top[side] == -INFINITY ? 0.0f : exp2Fast(fmaf(top[side], factor, shift));
      sum[side] = first ? added : fmaf(sum[side], shrink[side], added);
      top[side] = highest;
    }
  }
};

/// x += weights v for 64 keys, or x = it.
template <typename T>
__device__ inline void multiplyValues(float (&x)[8][4], const uint32_t (&weights)[4][4], uint64_t v,
                                      bool adds) {
  beginProducts();
#pragma unroll
  for (int m = 0; m < 4; ++m)
    multiply<T, true>(x, weights[m], further(v, m * 2048), m > 0 || adds);
  commitProducts();
  waitForProducts<0>();
  pinned(x);
}

using Pair = PairWork<4>; ///< q, k, v, out

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1)
    attendTile(const __grid_constant__ RelativeWork work, const __grid_constant__ AttendMaps maps,
               const __grid_constant__ PositionMaps positions, int chunks) {
  awaitStream();
  const AttentionWork &w = work.base;
  const Pair pair(w, chunks);
  const int h = pair.head, lane = threadIdx.x % kWarp, own = threadIdx.x / kWarp % 8 * 16,
            row = own + lane / 4;
  char *q = pair.tiles, *k = q + kWgTile, *v = k + kWgTile, *result = v + kWgTile;
  const float factor = float(w.scale) * kLog2E;
  const int queries[2] = {min(row, w.queries - 1), min(row + 8, w.queries - 1)};
  auto beginScores = [&](int b) { // the leader, as the next
    expectBytes(pair.scoresArrived, 2 * kWgTile);
    loadTile(q, maps.q, 0, h, b, pair.scoresArrived);
    loadTile(k, maps.k, 0, h, b, pair.scoresArrived);
  };
  auto beginValues = [&](int b) {
    expectBytes(pair.othersArrived, kWgTile);
    loadTile(v, maps.v, 0, h, b, pair.othersArrived);
  };
  pair.start(work, positions, [&](int b) { beginScores(b), beginValues(b); });
  for (int b = pair.first, item = 0; b < pair.end; b += 2, ++item) {
    const bool goesOn = b + 2 < pair.end;
    Softmax softmax;
    uint32_t weights[4][4] = {}, before[4][4]; // of the second 64 keys, and of the first
    float shrink[2];
    waitForBytes(pair.scoresArrived, item);
#pragma unroll 1
    for (int half = 0; half < kSide; half += 64) {
      WgMask<2> mask;
      mask.begin(w, b, h, half);
      mask.beginRows(w, b, h, queries, half);
      float p[8][4];
      makeProducts<T>(p, {own, own / 64 * 64, half}, q, k, pair.posKey, pair.posQuery, work.posKey.data,
                      work.posQuery.data);
      if (half) {
        if (pair.leads)
          waitForStores(); // the place of the result is free
        pair.meetPair();   // q and k are used up
        if (pair.leads && goesOn)
          beginScores(b + 2);
      }
      mask.arrange(w);
      hideScores(p, mask, w.keys - half - lane % 4 * 2);
      softmax.take(p, shrink, factor, half == 0);
      if (kDrops) {
        const ScoreEffects effects(w, b, h);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          float2 keep[2];
          effects.keepPairs(keep, queries, half + n * 8 + lane % 4 * 2);
#pragma unroll
          for (int side = 0; side < 2; ++side)
            p[n][2 * side] *= keep[side].x, p[n][2 * side + 1] *= keep[side].y;
        }
      }
#pragma unroll
      for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          before[m][l] = weights[m][l];
          weights[m][l] = packPair(p[2 * m + l / 2][l % 2 * 2], p[2 * m + l / 2][l % 2 * 2 + 1], T());
        }
    }
    waitForBytes(pair.othersArrived, item);
    float out[8][4], over[2];
    multiplyValues<T>(out, before, matrixAt(v), false);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        out[n][e] *= shrink[e / 2];
    multiplyValues<T>(out, weights, further(matrixAt(v), kHalfTile), true);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const float sum = softmax.sum[side], top = softmax.top[side];
      over[side] = sum == 0 ? 0.0f : 1 / sum;
      const float base = top == -INFINITY ? 0.0f : top <= kLowest ? float(w.fill) : top * factor * kLn2;
      if (lane % 4 == 0 && row + side * 8 < w.queries)
        store(w.lse, b * w.lseBatch + h * w.lseHead + row + side * 8, base + logf(sum));
    }
    uint32_t packed[4][4];
    packRows<T>(packed, out, over);
    keepPacked(result + own / 64 * kHalfTile, packed);
    showToProducts();
    pair.meetPair(); // the result is there, v is used up
    if (pair.leads) {
      storeTile(maps.out, result, 0, h, b);
      commitStores();
      if (goesOn)
        beginValues(b + 2);
    }
  }
  if (pair.leads)
    waitForStores();
}

} // namespace

cudaError_t prepareTile(const RelativeWork &w) {
  return withDrops(w.base, [](auto type, auto drops) {
    return allowShared(attendTile<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueTile(const RelativeWork &w, cudaStream_t stream) {
  AttendMaps maps;
  PositionMaps positions;
  cudaError_t code = describe(maps, w.base);
  if (code == cudaSuccess)
    code = describe(positions, w);
  if (code != cudaSuccess)
    return code;
  const int chunks = chunksFor(w.base, w.base.queries);
  return withDrops(w.base, [&](auto type, auto drops) {
    return enqueue(attendTile<decltype(type), decltype(drops)::value>, dim3(w.base.heads * chunks), kThreads,
                   Pair::kBytes, stream, w, maps, positions, chunks);
  });
}

} // namespace shardc::cuda::relative
