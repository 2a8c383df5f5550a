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
      const Widest<T> several = *reinterpret_cast<const Widest<T> *>(out + c),
                      others = *reinterpret_cast<const Widest<T> *>(dout + r * kRowPitch + from + c);
#pragma unroll
      for (int l = 0; l < 8; ++l)
        sum += widen(several.at[l]) * widen(others.at[l]);
    }
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  if (threadIdx.x % 4 == 0)
    deltas[r] = sum;
}

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1) gradKeys(RelativeWork work, GradientScores to) {
  const AttentionWork &w = work.base;
  const int distances = w.queries + w.keys - 1, keyTiles = (w.keys + kSide - 1) / kSide;
  const Place<T> q = Place<T>::first(), k = q + kTileSize, v = k + kTileSize, dout = v + kTileSize;
  const Place<T> posKey = dout + kTileSize, posQuery = posKey + kDistancesSize, bands = posQuery + kDistancesSize;
  // When the scores are made, their bands give way: to the probabilities, then to the gradients as a band of keys.
  const Place<T> dropped = bands, keyBand = bands, gradients = bands + kWideBandSize;
  Hidden *hidden = reinterpret_cast<Hidden *>(gradients.data + kScoresSize);
  float *deltas = reinterpret_cast<float *>(hidden + 1);
  const Share share;
  const int lane = share.lane, own = share.own, half = share.half;
  const int part = share.warp % 2 * 32; // of the elements of dk and dv; their keys are `own` too
  const float factor = float(w.scale) * kLog2E;
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  // Rows of a step are keys here, its partners queries.
  auto beginKeys = [&](const Step &s) {
    copyTile(k, w.k, s.b, s.h, s.row, w.keys);
    copyTile(v, w.v, s.b, s.h, s.row, w.keys);
  };
  auto beginQueries = [&](const Step &s) {
    copyTile(q, w.q, s.b, s.h, s.partner, w.queries);
    copyTile(dout, w.dout, s.b, s.h, s.partner, w.queries);
  };
  auto beginPositions = [&](const Step &s, Place<T> to, const PositionsView &from) {
    if (from.data)
      copyDistances(to, from, s.h, firstDistance(s.partner, s.row, w.keys), distances);
  };
  const Portion portion(w.batch * w.heads * keyTiles);
  const int count = (portion.end - portion.first) * ((w.queries + kSide - 1) / kSide);
  if (count == 0)
    return;
  Step step(w, portion.first, w.keys);
  beginKeys(step);
  beginQueries(step);
  beginPositions(step, posKey, work.posKey);
  beginPositions(step, posQuery, work.posQuery);
  float dk[4][4], dv[4][4];
  for (int number = 0; number < count; ++number) {
    Step next = step;
    next.advance(w, w.keys, w.queries);
    const bool goesOn = number + 1 < count, moves = goesOn && !next.meetsLike(step), ends = next.partner == 0;
    if (step.partner == 0) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          dk[n][e] = dv[n][e] = 0;
    }
    hidden->fill(w, step.b, step.h, step.partner, step.row);
    const int row = step.partner + own + lane / 4;
    const bool real[2] = {row < w.queries, row + 8 < w.queries};
    const int rows[2] = {real[0] ? row : 0, real[1] ? row + 8 : 0};
    auto shiftOf = [&](int side) {
      return RowShift(load<float>(w.lse, step.b * w.lseBatch + step.h * w.lseHead + rows[side]), w.keys, real[side]);
    };
    const RowShift shifts[2] = {shiftOf(0), shiftOf(1)};
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    sumDeltas(deltas, w, step.b, step.h, step.partner, dout.data);
    if (toQueries)
      share.keyBand(bands, k, posQuery);
    __syncthreads();
    float p[8][4] = {};
    multiplyHeads(p, q + own * kRowPitch, k + half * kRowPitch);
    if (toQueries)
      share.addKeyBands(p, bands);
    const float rowDeltas[2] = {deltas[own + lane / 4], deltas[own + lane / 4 + 8]};
    const uint32_t hides[2] = {hidden->pairs(w, share, own + lane / 4), hidden->pairs(w, share, own + lane / 4 + 8)};
    __syncthreads();
    if (toKeys)
      share.addQueryTerms(p, bands, q, posKey);
    const uint32_t beyond = Hidden::beyond(w.keys - step.row - half - lane % 4 * 2);
    hideScores(p, hides, beyond);
    uint32_t probabilities[8][2], differences[8][2];
#pragma unroll
    for (int quarter = 0; quarter < 8; quarter += 4) { // 32 keys, for want of registers
      float ds[4][4] = {};
      multiplyHeads(ds, dout + own * kRowPitch, v + (half + quarter * 8) * kRowPitch);
#pragma unroll
      for (int n = quarter; n < quarter + 4; ++n) {
        float2 keeps[2] = {{1, 1}, {1, 1}};
        if (kDrops)
          ScoreEffects(w, step.b, step.h).keepPairs(keeps, rows, step.row + half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const RowShift &shift = shifts[side];
          const float one = shift.share != 0 ? shift.share : exp2Fast(fmaf(p[n][2 * side], factor, shift.shift));
          const float two = shift.share != 0 ? shift.share : exp2Fast(fmaf(p[n][2 * side + 1], factor, shift.shift));
          const float dOne = keeps[side].x * ds[n - quarter][2 * side] - rowDeltas[side];
          const float dTwo = keeps[side].y * ds[n - quarter][2 * side + 1] - rowDeltas[side];
          probabilities[n][side] = packPair(one * keeps[side].x, two * keeps[side].y, T());
          differences[n][side] = packPair(one * dOne, two * dTwo, T());
        }
      }
    }
    if (__any_sync(0xffffffffu, hides[0] | hides[1] | beyond)) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const uint32_t none = (hides[side] | beyond) >> n;
          differences[n][side] &= (none & 1 ? 0 : 0xffffu) | (none & 0x10000u ? 0 : 0xffff0000u);
        }
    }
    __syncthreads(); // bands, keys, values and posKey are used up
    if (goesOn && ends)
      beginKeys(next);
    if (moves)
      beginPositions(next, posKey, work.posKey);
    {
      const int at = (own + lane / 4) * kScorePitch + half + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          *reinterpret_cast<uint32_t *>(dropped.data + at + side * 8 * kScorePitch + n * 8) = probabilities[n][side];
          *reinterpret_cast<uint32_t *>(gradients.data + at + side * 8 * kScorePitch + n * 8) = differences[n][side];
        }
    }
    __syncthreads();
    multiplyTurned<T, kScorePitch, kSide>(dv, dropped + own, dout + part);
    multiplyTurned<T, kScorePitch, kSide>(dk, gradients + own, q + part);
    {
      const int r = threadIdx.x / 16, c = threadIdx.x % 16 * 8;
      T *row = to.row<T>(w, step.b, step.h, step.partner + r) + step.row + c;
      const T *from = gradients.data + r * kScorePitch + c;
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (step.partner + r + e * 32 < w.queries && step.row + c < to.pitch)
          *reinterpret_cast<uint4 *>(row + (long long)(e) * 32 * to.pitch) =
              *reinterpret_cast<const uint4 *>(from + e * 32 * kScorePitch);
    }
    __syncthreads(); // queries and probabilities are used up
    if (goesOn)
      beginQueries(next);
    if (toQueries) {
      clearKeyBand(keyBand.data);
      T *at = keyBand.data + (half + lane % 4 * 2) * kWideBandPitch + keyColumn(own + lane / 4, lane % 4 * 2);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const Pack<T, 2> pair = *reinterpret_cast<const Pack<T, 2> *>(&differences[n][side]);
          T *one = at + n * 8 * kWideBandPitch - n % 2 * 8 + side * 8;
          one[0] = pair.at[0];
          one[kWideBandPitch - 1] = pair.at[1];
        }
      __syncthreads();
      multiplyPlain<T, kWideBandPitch, kWideBand>(dk, keyBand + own * kWideBandPitch,
                                                  posQuery + ((kSide - 16 - own) * kRowPitch + part));
    }
    if (ends) {
      const float scale = float(w.scale);
      storePart<T>(w.dk, step.b, step.h, step.row + own, w.keys, part, dk, scale, scale);
      storePart<T>(w.dv, step.b, step.h, step.row + own, w.keys, part, dv, 1.0f, 1.0f);
    }
    if (moves) {
      __syncthreads(); // posQuery is used up
      beginPositions(next, posQuery, work.posQuery);
    }
    step = next;
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
