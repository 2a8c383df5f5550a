// SPDX-License-Identifier: Apache-2.0
// relative_attention of 16-bit heads of 64 elements by the tensor cores: a block for 128 queries of a head. Two
// warps share 16 queries; each walks over its own 64 keys of every tile with a running softmax, and they join at
// the end.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda {
namespace relative {
namespace {

/// 2^((x - top) factor), 0 for an `x` of -inf whatever `top` is.
__device__ inline float shrinkOf(float x, float top, float factor) {
  return x == -INFINITY ? 0.0f : exp2Fast((x - top) * factor);
}

/// A warp's running softmax of 16 rows: rows l / 4 and 8 more. Scores are products, still to be multiplied by
/// `factor` = scale log2(e) > 0.
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
      highest = quadJoin(highest, [](float a, float b) { return fmaxf(a, b); });
      // A row of -inf gives exponentials of 0 and not NaN.
      const float shift = highest == -INFINITY ? 0.0f : -highest * factor;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          p[n][e] = exp2Fast(fmaf(p[n][e], factor, shift));
          added += p[n][e];
        }
      added = quadJoin(added, Plus());
      if (!first) {
        const float shrink = shrinkOf(top[half], highest, factor);
        added += sum[half] * shrink;
#pragma unroll
        for (int n = 0; n < 8; ++n)
          out[n][2 * half] *= shrink, out[n][2 * half + 1] *= shrink;
      }
      top[half] = highest, sum[half] = added;
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

/// Bytes: two stages of q, k and v; the positions; room for each warp.
constexpr int kStage = 3 * kWgTile, kPosKeyAt = 2 * kStage, kPosQueryAt = kPosKeyAt + kDistancesTile,
              kRoomsAt = kPosQueryAt + kDistancesTile, kBytes = kRoomsAt + kThreads / kWarp * kRoom * 4;
static_assert(kBytes <= kMostAttentionShared);

template <typename T, bool kDrops> __global__ void __launch_bounds__(kThreads, 1) attend(RelativeWork work) {
  awaitStream();
  const AttentionWork &w = work.base;
  const int distances = w.queries + w.keys - 1;
  char *shared = alignedShared(), *posKey = shared + kPosKeyAt, *posQuery = shared + kPosQueryAt;
  const Share share;
  const int lane = share.lane, half = share.half;
  float *const room = reinterpret_cast<float *>(shared + kRoomsAt) + share.warp * kRoom + lane;
  const float *const otherRoom = room + (half ? -8 : 8) * kRoom; // of the warp with the other keys
  const float factor = float(w.scale) * kLog2E;
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  auto begin = [&](const Step &s, char *to) {
    copyTile(to, w.q, s.b, s.h, s.row, w.queries, T());
    copyTile<true>(to + kWgTile, w.k, s.b, s.h, s.partner, w.keys, T());
    copyTile(to + 2 * kWgTile, w.v, s.b, s.h, s.partner, w.keys, T());
  };
  auto beginPositions = [&](const Step &s) {
    const int first = firstDistance(s.row, s.partner, w.keys);
    copyDistances(posKey, work.posKey, s.h, first, distances, T());
    copyDistances(posQuery, work.posQuery, s.h, first, distances, T());
  };
  const Portion portion(w.batch * w.heads * ((w.queries + kSide - 1) / kSide));
  const int count = (portion.end - portion.first) * ((w.keys + kSide - 1) / kSide);
  if (count == 0)
    return;
  Step step(w, portion.first, w.queries);
  begin(step, shared);
  beginPositions(step);
  Running running;
  for (int number = 0; number < count; ++number) {
    Step next = step;
    next.advance(w, w.queries, w.keys);
    const bool goesOn = number + 1 < count, moves = goesOn && !next.meetsLike(step), first = step.partner == 0;
    const char *q = shared + number % 2 * kStage, *k = q + kWgTile, *v = k + kWgTile;
    const int row = step.row + share.own + lane / 4, firstKey = step.partner + half;
    const int queries[2] = {min(row, w.queries - 1), min(row + 8, w.queries - 1)};
    WgMask<2> mask;
    mask.begin(w, step.b, step.h, firstKey);
    mask.beginRows(w, step.b, step.h, queries, firstKey);
    waitForCopies();
    showToProducts();
    __syncthreads(); // this tile is there, and the one before is used up
    if (goesOn)
      begin(next, shared + (number + 1) % 2 * kStage);
    float p[8][4];
    makeScores<T>(p, share, q, k, posKey, posQuery, toKeys, toQueries);
    if (moves) {
      __syncthreads(); // the positions are used up
      beginPositions(next);
    }
    mask.arrange(w);
    hideScores(p, mask, w.keys - firstKey - lane % 4 * 2);
    running.take(p, factor, first);
    if (kDrops) {
      const ScoreEffects effects(w, step.b, step.h);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, queries, firstKey + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side)
          p[n][2 * side] *= keep[side].x, p[n][2 * side + 1] *= keep[side].y;
      }
    }
    uint32_t rounded[4][4];
    const float one[2] = {1, 1};
    packRows<T>(rounded, p, one);
    const uint64_t values = matrixAt(v + half / 64 * kHalfTile);
    beginProducts();
#pragma unroll
    for (int m = 0; m < 4; ++m)
      multiply<T, true>(running.out, rounded[m], further(values, m * 2048), m > 0 || !first);
    commitProducts();
    waitForProducts<0>();
    pinned(running.out);
    if (step.partner + kSide >= w.keys) {
      half ? running.leave<0>(room) : running.leave<4>(room);
      __syncthreads();
      float out[4][4], over[2];
      half ? running.join<4>(otherRoom, factor, out) : running.join<0>(otherRoom, factor, out);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int i = row + side * 8;
        const float sum = running.sum[side], top = running.top[side];
        over[side] = sum == 0 ? 0.0f : 1 / sum;
        const float base = top == -INFINITY ? 0.0f : top <= kLowest ? float(w.fill) : top * factor * kLn2;
        if (!half && lane % 4 == 0 && i < w.queries)
          store(w.lse, step.b * w.lseBatch + step.h * w.lseHead + i, base + logf(sum));
      }
      const int top = row - lane / 4;
      storeWide(headRow<T>(w.out, step.b, step.h, top) + half / 2, w.out.row, w.queries - top, out, over);
    }
    step = next;
  }
}

} // namespace
} // namespace relative

cudaError_t prepareRelativeMma(const RelativeWork &w) {
  if (relative::isOneTile(w))
    return relative::prepareTile(w);
  return withDrops(w.base, [](auto type, auto drops) {
    return allowShared(relative::attend<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueRelativeMma(const RelativeWork &w, void *, cudaStream_t stream) {
  using namespace relative;
  if (isOneTile(w))
    return enqueueTile(w, stream);
  const dim3 grid(blocksOf((long long)(w.base.batch) * w.base.heads * tilesOf(w.base.queries)));
  return withDrops(w.base, [&](auto type, auto drops) {
    return enqueue(attend<decltype(type), decltype(drops)::value>, grid, kThreads, kBytes, stream, w);
  });
}

} // namespace shardc::cuda
