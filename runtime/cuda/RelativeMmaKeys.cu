// SPDX-License-Identifier: Apache-2.0
// The first part of the gradient of relative_attention by the tensor cores: a block for 128 keys of a head, which walks
// over the queries, computes each probability once, leaves the gradients of the scores in scratch memory, and makes dv
// and dk.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda::relative {
namespace {

/// The sum of dout out for each query of the tile, 0 beyond the last: four lanes a row.
template <typename T>
__device__ inline void sumDeltas(float *deltas, const AttentionWork &w, int b, int h, int i0, const T *dout) {
  const int r = threadIdx.x / 4, from = threadIdx.x % 4 * 16;
  float sum = 0;
  if (i0 + r < w.queries) {
    const T *out = static_cast<const T *>(w.out.data) + b * w.out.batch + h * w.out.head + (i0 + r) * w.out.row + from;
#pragma unroll
    for (int c = 0; c < 16; c += 8) {
      const Widest<T> several = *reinterpret_cast<const Widest<T> *>(out + c);
#pragma unroll
      for (int l = 0; l < 8; ++l)
        sum += widen(several.at[l]) * widen(dout[r * kRowPitch + from + c + l]);
    }
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  if (threadIdx.x % 4 == 0)
    deltas[r] = sum;
}

/// One tile of one item; an item is 128 keys of a head. Those of one head and place follow each other, batch by batch.
struct Step {
  int b, h, i0, j0;
  __device__ Step(const AttentionWork &w, int step, int queryTiles, int keyTiles) {
    const int item = step / queryTiles, place = item / w.batch;
    b = item % w.batch, h = place / keyTiles, j0 = place % keyTiles * kSide, i0 = step % queryTiles * kSide;
  }
  /// Do they need the same rows of positions?
  __device__ bool meetsLike(const Step &other) const { return h == other.h && i0 - j0 == other.i0 - other.j0; }
};

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1) gradKeys(RelativeWork work, GradientScores to) {
  const AttentionWork &w = work.base;
  const int queryTiles = (w.queries + kSide - 1) / kSide, keyTiles = (w.keys + kSide - 1) / kSide;
  const int distances = w.queries + w.keys - 1;
  T *q = dynamicShared<T>(), *k = q + kTileSize, *v = k + kTileSize, *dout = v + kTileSize;
  T *posKey = dout + kTileSize, *posQuery = posKey + kDistancesSize, *bands = posQuery + kDistancesSize;
  // When the scores are made, their bands give way: to the probabilities, then to the gradients as a band of keys.
  T *dropped = bands, *keyBand = bands, *gradients = bands + kWideBandSize;
  Hidden *hidden = reinterpret_cast<Hidden *>(gradients + kScoresSize);
  float *deltas = reinterpret_cast<float *>(hidden + 1);
  const Share share;
  const int lane = share.lane, own = share.own, half = share.half;
  const int part = share.warp % 2 * 32; // of the elements of dk and dv; their keys are `own` too
  const ScoreScale scale(w);
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  auto beginKeys = [&](const Step &s) {
    copyTile(k, w.k, s.b, s.h, s.j0, w.keys);
    copyTile(v, w.v, s.b, s.h, s.j0, w.keys);
  };
  auto beginQueries = [&](const Step &s) {
    copyTile(q, w.q, s.b, s.h, s.i0, w.queries);
    copyTile(dout, w.dout, s.b, s.h, s.i0, w.queries);
  };
  auto beginPositions = [&](const Step &s, T *to, const PositionsView &from) {
    if (from.data)
      copyDistances(to, from, s.h, firstDistance(s.i0, s.j0, w.keys), distances);
  };
  const Portion portion(w.batch * w.heads * keyTiles);
  const int begin = portion.first * queryTiles, end = portion.end * queryTiles;
  float dk[4][4], dv[4][4];
  for (int number = begin; number < end; ++number) {
    const Step step(w, number, queryTiles, keyTiles), next(w, number + 1, queryTiles, keyTiles);
    const bool goesOn = number + 1 < end, moves = goesOn && !next.meetsLike(step), ends = next.i0 == 0;
    if (number == begin) {
      beginKeys(step);
      beginQueries(step);
      beginPositions(step, posKey, work.posKey);
      beginPositions(step, posQuery, work.posQuery);
    }
    if (step.i0 == 0) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          dk[n][e] = dv[n][e] = 0;
    }
    hidden->fill(w, step.b, step.h, step.i0, step.j0);
    const int row = step.i0 + own + lane / 4;
    const bool real[2] = {row < w.queries, row + 8 < w.queries};
    const int rows[2] = {real[0] ? row : 0, real[1] ? row + 8 : 0};
    auto shiftOf = [&](int side) {
      return RowPower(load<float>(w.lse, step.b * w.lseBatch + step.h * w.lseHead + rows[side]), w.keys, real[side]);
    };
    const RowPower shifts[2] = {shiftOf(0), shiftOf(1)};
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    sumDeltas(deltas, w, step.b, step.h, step.i0, dout);
    if (toQueries)
      share.keyBand(bands, k, posQuery);
    __syncthreads();
    float p[8][4] = {};
    multiplyRows<T, kDepth>(p, q + own * kRowPitch, k + half * kRowPitch);
    if (toQueries)
      share.addKeyBands(p, bands);
    const float rowDeltas[2] = {deltas[own + lane / 4], deltas[own + lane / 4 + 8]};
    const uint32_t hides[2] = {hidden->pairs(w, share, own + lane / 4), hidden->pairs(w, share, own + lane / 4 + 8)};
    __syncthreads();
    if (toKeys)
      share.addQueryTerms(p, bands, q, posKey);
    const int left = w.keys - step.j0 - half - lane % 4 * 2; // keys from the lane's first on
    uint32_t probabilities[8][2], differences[8][2];
#pragma unroll
    for (int quarter = 0; quarter < 8; quarter += 4) { // 32 keys, for want of registers
      float ds[4][4] = {};
      multiplyRows<T, kDepth>(ds, dout + own * kRowPitch, v + (half + quarter * 8) * kRowPitch);
#pragma unroll
      for (int n = quarter; n < quarter + 4; ++n) {
        float2 keeps[2] = {{1, 1}, {1, 1}};
        if (kDrops)
          ScoreEffects(w, step.b, step.h).keepPairs(keeps, rows, step.j0 + half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const float2 keep = keeps[side], dp = {ds[n - quarter][2 * side], ds[n - quarter][2 * side + 1]};
          const bool hideOne = hides[side] >> n & 1, hideTwo = hides[side] >> (n + 16) & 1;
          const bool realOne = n * 8 < left, realTwo = n * 8 + 1 < left;
          const float one = shifts[side].power(scale.score(p[n][2 * side], hideOne, realOne));
          const float two = shifts[side].power(scale.score(p[n][2 * side + 1], hideTwo, realTwo));
          const float dOne = hideOne || !realOne ? 0.0f : one * (keep.x * dp.x - rowDeltas[side]);
          const float dTwo = hideTwo || !realTwo ? 0.0f : two * (keep.y * dp.y - rowDeltas[side]);
          probabilities[n][side] = packPair(one * keep.x, two * keep.y, T());
          differences[n][side] = packPair(dOne, dTwo, T());
        }
      }
    }
    __syncthreads(); // bands, keys, values and posKey are used up
    if (goesOn && ends)
      beginKeys(next);
    if (moves)
      beginPositions(next, posKey, work.posKey);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int at = (own + lane / 4 + side * 8) * kScorePitch + half + n * 8 + lane % 4 * 2;
        *reinterpret_cast<uint32_t *>(dropped + at) = probabilities[n][side];
        *reinterpret_cast<uint32_t *>(gradients + at) = differences[n][side];
      }
    __syncthreads();
    multiplyTurned<T, kScorePitch>(dv, dropped + own, dout + part, kSide);
    multiplyTurned<T, kScorePitch>(dk, gradients + own, q + part, kSide);
    for (int e = threadIdx.x; e < kSide * kSide / 8; e += kThreads) {
      const int r = e / (kSide / 8), c = e % (kSide / 8) * 8;
      if (step.i0 + r < w.queries && step.j0 + c < to.pitch)
        *reinterpret_cast<uint4 *>(to.row<T>(w, step.b, step.h, step.i0 + r) + step.j0 + c) =
            *reinterpret_cast<const uint4 *>(gradients + r * kScorePitch + c);
    }
    __syncthreads(); // queries and probabilities are used up
    if (goesOn)
      beginQueries(next);
    if (toQueries) {
      clearKeyBand(keyBand);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const int i = own + lane / 4 + side * 8, j = half + n * 8 + lane % 4 * 2;
          const Pack<T, 2> pair = *reinterpret_cast<const Pack<T, 2> *>(&differences[n][side]);
          keyBand[j * kWideBandPitch + keyColumn(i, j)] = pair.at[0];
          keyBand[(j + 1) * kWideBandPitch + keyColumn(i, j + 1)] = pair.at[1];
        }
      __syncthreads();
      multiplyPlain<T, kWideBandPitch>(dk, keyBand + own * kWideBandPitch,
                                       posQuery + (kSide - 16 - own) * kRowPitch + part, kWideBand);
    }
    if (ends) {
      storePart<T>(w.dk, step.b, step.h, step.j0 + own, w.keys, part, dk, float(w.scale));
      storePart<T>(w.dv, step.b, step.h, step.j0 + own, w.keys, part, dv, 1.0f);
    }
    if (moves) {
      __syncthreads(); // posQuery is used up
      beginPositions(next, posQuery, work.posQuery);
    }
  }
}

constexpr int kBytes = (4 * kTileSize + 2 * kDistancesSize + kWideBandSize + kScoresSize) * 2 + int(sizeof(Hidden)) +
                       kSide * 4;
static_assert(kBytes <= kMostAttentionShared);
static_assert(kBandsSize <= kWideBandSize + kScoresSize && kScoresSize <= kWideBandSize);

} // namespace

cudaError_t prepareGradKeys(const RelativeWork &w) {
  return withKind(
      w, [](auto type, auto drops) { return allowShared(gradKeys<decltype(type), decltype(drops)::value>); });
}

cudaError_t enqueueGradKeys(const RelativeWork &w, const GradientScores &to, cudaStream_t stream) {
  const dim3 grid(blocksOf((long long)(w.base.batch) * w.base.heads * tilesOf(w.base.keys)));
  return withKind(w, [&](auto type, auto drops) {
    return enqueue(gradKeys<decltype(type), decltype(drops)::value>, grid, kThreads, kBytes, stream, w, to);
  });
}

} // namespace shardc::cuda::relative
