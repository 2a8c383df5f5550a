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

/// 2^((x - top) factor), 0 for an `x` of -inf whatever `top` is.
__device__ inline float shrinkOf(float x, float top, float factor) {
  return x == -INFINITY ? 0.0f : exp2Fast((x - top) * factor);
}

/// A warp's running softmax of 16 rows: rows l / 4 and 8 more. Scores are products, still to be multiplied by `factor` =
/// scale log2(e) > 0.
struct Running {
  float out[8][4], top[2], sum[2];

  /// In: products. Out: what their exponentials are to be multiplied by v.
  __device__ void take(float (&p)[8][4], float factor, bool first) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = first ? -INFINITY : top[half], added = 0;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        highest = fmaxf(highest, fmaxf(p[n][2 * half], p[n][2 * half + 1]));
      highest = rowJoin(highest, [](float a, float b) { return fmaxf(a, b); });
      // A row of -inf gives exponentials of 0 and not NaN.
      const float shift = highest == -INFINITY ? 0.0f : -highest * factor;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          p[n][e] = exp2Fast(fmaf(p[n][e], factor, shift));
          added += p[n][e];
        }
      added = rowJoin(added, Plus());
      if (!first) {
        const float shrink = shrinkOf(top[half], highest, factor);
        added += sum[half] * shrink;
#pragma unroll
        for (int n = 0; n < 8; ++n)
          out[n][2 * half] *= shrink, out[n][2 * half + 1] *= shrink;
      }
      top[half] = highest, sum[half] = added;
    }
    if (first) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          out[n][e] = 0;
    }
  }
  /// The four blocks of columns from kFirst on to `room`, for the other warp of the rows.
  template <int kFirst> __device__ void leave(float *room) const {
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        room[(n * 4 + e) * kWarp] = out[kFirst + n][e];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      room[(16 + half) * kWarp] = top[half], room[(18 + half) * kWarp] = sum[half];
  }
  /// The blocks of columns from kFirst on, with what the other warp left.
  template <int kFirst> __device__ void join(const float *room, float factor, float (&to)[4][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float otherTop = room[(16 + half) * kWarp], both = fmaxf(top[half], otherTop);
      const float mine = shrinkOf(top[half], both, factor), other = shrinkOf(otherTop, both, factor);
      top[half] = both;
      sum[half] = sum[half] * mine + room[(18 + half) * kWarp] * other;
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          to[n][e] = out[kFirst + n][e] * mine + room[(n * 4 + e) * kWarp] * other;
    }
  }
};
constexpr int kRoom = 20 * kWarp; ///< floats that `leave` writes
static_assert(kThreads / kWarp * kRoom * 4 <= kBandsSize * 2);

template <typename T, bool kDrops> __global__ void __launch_bounds__(kThreads, 1) attend(RelativeWork work) {
  const AttentionWork &w = work.base;
  const int distances = w.queries + w.keys - 1, queryTiles = (w.queries + kSide - 1) / kSide;
  const Place<T> stages = Place<T>::first(), posKey = stages + 6 * kTileSize, posQuery = posKey + kDistancesSize;
  const Place<T> bands = posQuery + kDistancesSize;
  Hidden *hidden = reinterpret_cast<Hidden *>(bands.data + kBandsSize);
  const Share share;
  const int lane = share.lane, half = share.half;
  const float factor = float(w.scale) * kLog2E;
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  auto begin = [&](const Step &s, Place<T> to) {
    copyTile(to, w.q, s.b, s.h, s.row, w.queries);
    copyTile(to + kTileSize, w.k, s.b, s.h, s.partner, w.keys);
    copyTile(to + 2 * kTileSize, w.v, s.b, s.h, s.partner, w.keys);
  };
  auto beginPositions = [&](const Step &s, Place<T> to, const PositionsView &from) {
    if (from.data)
      copyDistances(to, from, s.h, firstDistance(s.row, s.partner, w.keys), distances);
  };
  const Portion portion(w.batch * w.heads * queryTiles);
  const int count = (portion.end - portion.first) * ((w.keys + kSide - 1) / kSide);
  if (count == 0)
    return;
  Step step(w, portion.first, w.queries);
  begin(step, stages);
  beginPositions(step, posKey, work.posKey);
  beginPositions(step, posQuery, work.posQuery);
  Running running;
  for (int number = 0; number < count; ++number) {
    Step next = step;
    next.advance(w, w.queries, w.keys);
    const bool goesOn = number + 1 < count, moves = goesOn && !next.meetsLike(step);
    const Place<T> q = stages + number % 2 * 3 * kTileSize, k = q + kTileSize, v = k + kTileSize;
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (goesOn)
      begin(next, stages + (number + 1) % 2 * 3 * kTileSize);
    hidden->fill(w, step.b, step.h, step.row, step.partner);
    if (toQueries)
      share.keyBand(bands, k, posQuery);
    __syncthreads();
    float p[8][4] = {};
    multiplyHeads(p, q + share.own * kRowPitch, k + half * kRowPitch);
    if (toQueries)
      share.addKeyBands(p, bands);
    __syncthreads();
    if (moves)
      beginPositions(next, posQuery, work.posQuery);
    if (toKeys)
      share.addQueryTerms(p, bands, q, posKey);
    const int row = share.own + lane / 4;
    const uint32_t hides[2] = {hidden->pairs(w, share, row), hidden->pairs(w, share, row + 8)};
    hideScores(p, hides, Hidden::beyond(w.keys - step.partner - half - lane % 4 * 2));
    running.take(p, factor, step.partner == 0);
    if (kDrops) {
      const ScoreEffects effects(w, step.b, step.h);
      const int queries[2] = {min(step.row + row, w.queries - 1), min(step.row + row + 8, w.queries - 1)};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, queries, step.partner + half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side)
          p[n][2 * side] *= keep[side].x, p[n][2 * side + 1] *= keep[side].y;
      }
    }
    multiplyRounded(running.out, p, v + half * kRowPitch);
    const bool last = step.partner + kSide >= w.keys;
    if (last || moves)
      __syncthreads(); // posKey and the bands are used up
    if (moves)
      beginPositions(next, posKey, work.posKey);
    if (last) {
      float *rooms = reinterpret_cast<float *>(bands.data) + lane, *room = rooms + (share.warp ^ 1) * kRoom;
      half ? running.leave<0>(rooms + share.warp * kRoom) : running.leave<4>(rooms + share.warp * kRoom);
      __syncthreads();
      float out[4][4], over[2];
      half ? running.join<4>(room, factor, out) : running.join<0>(room, factor, out);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int i = step.row + row + side * 8;
        const float sum = running.sum[side], top = running.top[side];
        over[side] = sum == 0 ? 0.0f : 1 / sum;
        const float base = top == -INFINITY ? 0.0f : top <= kLowest ? float(w.fill) : top * factor * kLn2;
        if (!half && lane % 4 == 0 && i < w.queries)
          store(w.lse, step.b * w.lseBatch + step.h * w.lseHead + i, base + logf(sum));
      }
      storePart<T>(w.out, step.b, step.h, step.row + share.own, w.queries, half / 2, out, over[0], over[1]);
    }
    step = next;
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
