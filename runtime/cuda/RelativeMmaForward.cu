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

/// 2^(x - top), 0 for an `x` of -inf whatever `top` is.
__device__ inline float shrinkOf(float x, float top) { return x == -INFINITY ? 0.0f : exp2Fast(x - top); }

/// A warp's running softmax of 16 rows: rows l / 4 and 8 more.
struct Running {
  float out[8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  /// In: scores times log2(e). Out: what their exponentials are to be multiplied by v.
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
          p[n][e] = exp2Fast(p[n][e] - shift);
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
constexpr int kRoom = 36 * kWarp; ///< floats that `leave` writes
static_assert(kThreads / kWarp / 2 * kRoom * 4 <= kBandsSize * 2);

/// One tile of one item; an item is 128 queries of a head. Those of one head and place follow each other, batch by batch.
struct Step {
  int b, h, i0, j0;
  __device__ Step(const AttentionWork &w, int step, int queryTiles, int keyTiles) {
    const int item = step / keyTiles, place = item / w.batch;
    b = item % w.batch, h = place / queryTiles, i0 = place % queryTiles * kSide, j0 = step % keyTiles * kSide;
  }
  /// Do they need the same rows of positions?
  __device__ bool meetsLike(const Step &other) const { return h == other.h && i0 - j0 == other.i0 - other.j0; }
};

template <typename T, bool kDrops> __global__ void __launch_bounds__(kThreads, 1) attend(RelativeWork work) {
  const AttentionWork &w = work.base;
  const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
  const int distances = w.queries + w.keys - 1;
  T *stages = dynamicShared<T>(), *posKey = stages + 6 * kTileSize, *posQuery = posKey + kDistancesSize;
  T *bands = posQuery + kDistancesSize;
  Hidden *hidden = reinterpret_cast<Hidden *>(bands + kBandsSize);
  const Share share;
  const int lane = share.lane, half = share.half;
  const ScoreScale scale(w);
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  auto begin = [&](const Step &s, T *to) {
    copyTile(to, w.q, s.b, s.h, s.i0, w.queries);
    copyTile(to + kTileSize, w.k, s.b, s.h, s.j0, w.keys);
    copyTile(to + 2 * kTileSize, w.v, s.b, s.h, s.j0, w.keys);
  };
  auto beginPositions = [&](const Step &s, T *to, const PositionsView &from) {
    if (from.data)
      copyDistances(to, from, s.h, firstDistance(s.i0, s.j0, w.keys), distances);
  };
  const Portion portion(w.batch * w.heads * queryTiles);
  const int end = portion.end * keyTiles;
  Running running;
  for (int number = portion.first * keyTiles; number < end; ++number) {
    const Step step(w, number, queryTiles, keyTiles), next(w, number + 1, queryTiles, keyTiles);
    const bool starts = number == portion.first * keyTiles, goesOn = number + 1 < end, moves = !next.meetsLike(step);
    T *q = stages + number % 2 * 3 * kTileSize, *k = q + kTileSize, *v = k + kTileSize;
    if (starts) {
      begin(step, q);
      beginPositions(step, posKey, work.posKey);
      beginPositions(step, posQuery, work.posQuery);
    }
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (goesOn)
      begin(next, stages + (number + 1) % 2 * 3 * kTileSize);
    if (step.j0 == 0)
      running = Running();
    hidden->fill(w, step.b, step.h, step.i0, step.j0);
    if (toQueries)
      share.keyBand(bands, k, posQuery);
    __syncthreads();
    float p[8][4] = {};
    multiplyRows<T, kDepth>(p, q + share.own * kRowPitch, k + half * kRowPitch);
    if (toQueries)
      share.addKeyBands(p, bands);
    __syncthreads();
    if (goesOn && moves)
      beginPositions(next, posQuery, work.posQuery);
    if (toKeys)
      share.addQueryTerms(p, bands, q, posKey);
    const int row = share.own + lane / 4;
    const uint32_t hides[2] = {hidden->pairs(w, share, row), hidden->pairs(w, share, row + 8)};
    const int left = w.keys - step.j0 - half - lane % 4 * 2; // keys from the lane's first on
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        p[n][e] = scale.score(p[n][e], hides[e / 2] >> (n + e % 2 * 16) & 1, n * 8 + e % 2 < left);
    running.take(p);
    if (kDrops) {
      const ScoreEffects effects(w, step.b, step.h);
      const int queries[2] = {min(step.i0 + row, w.queries - 1), min(step.i0 + row + 8, w.queries - 1)};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, queries, step.j0 + half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side)
          p[n][2 * side] *= keep[side].x, p[n][2 * side + 1] *= keep[side].y;
      }
    }
    multiplyColumns<T, kDepth>(running.out, p, v + half * kRowPitch);
    const bool last = step.j0 + kSide >= w.keys;
    if (last || (goesOn && moves))
      __syncthreads(); // posKey and the bands are used up
    if (goesOn && moves)
      beginPositions(next, posKey, work.posKey);
    if (!last)
      continue;
    float *room = reinterpret_cast<float *>(bands) + share.warp / 2 * kRoom;
    if (half)
      running.leave(room);
    __syncthreads();
    if (half)
      continue;
    running.join(room);
    float factor[2];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int i = step.i0 + row + side * 8;
      const float sum = running.sum[side], top = running.top[side];
      factor[side] = sum == 0 ? 0.0f : 1 / sum;
      const float base = top == -INFINITY ? 0.0f : top <= kLowest ? float(w.fill) : top * kLn2;
      if (lane % 4 == 0 && i < w.queries)
        store(w.lse, step.b * w.lseBatch + step.h * w.lseHead + i, base + logf(sum));
    }
    storeRows<T, kDepth>(w.out, step.b, step.h, step.i0 + share.own, w.queries, running.out, factor);
  }
}

constexpr int kBytes = (6 * kTileSize + 2 * kDistancesSize + kBandsSize) * 2 + int(sizeof(Hidden));
static_assert(kBytes <= kMostAttentionShared);

} // namespace
} // namespace relative

cudaError_t prepareRelativeMma(const RelativeWork &w) {
  return relative::withKind(w, [](auto type, auto drops) {
    return allowShared(relative::attend<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueRelativeMma(const RelativeWork &w, void *, cudaStream_t stream) {
  using namespace relative;
  const dim3 grid(blocksOf((long long)(w.base.batch) * w.base.heads * tilesOf(w.base.queries)));
  return withKind(w, [&](auto type, auto drops) {
    return enqueue(attend<decltype(type), decltype(drops)::value>, grid, kThreads, kBytes, stream, w);
  });
}

} // namespace shardc::cuda
