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

/// The warp's part of dk or dv: 16 keys from `first` on, 32 elements from `column` on.
template <typename T>
__device__ inline void storePart(const HeadsView &to, int b, int h, int first, int end, int column,
                                 const float (&x)[4][4], float factor) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= end)
      continue;
    T *at = static_cast<T *>(to.data) + b * to.batch + h * to.head + row * to.row + column + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 4; ++n)
      *reinterpret_cast<uint32_t *>(at + n * 8) = packPair(x[n][2 * half] * factor, x[n][2 * half + 1] * factor, T());
  }
}

template <typename T> __global__ void __launch_bounds__(kThreads, 1) gradKeys(RelativeWork work, GradientScores to) {
  const AttentionWork &w = work.base;
  const int tiles = (w.keys + kSide - 1) / kSide, distances = w.queries + w.keys - 1;
  const int j0 = blockIdx.x % tiles * kSide, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  T *q = dynamicShared<T>(), *k = q + kTileSize, *v = k + kTileSize, *dout = v + kTileSize;
  T *posKey = dout + kTileSize, *posQuery = posKey + kDistancesSize;
  float *bands = reinterpret_cast<float *>(posQuery + kDistancesSize), *deltas = bands + kBandBytes / 4;
  // When the scores are made, their bands give way: to the probabilities, then to the gradients as a band of keys.
  T *dropped = reinterpret_cast<T *>(bands), *keyBand = dropped, *gradients = dropped + kWideBandSize;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, own = warp / 2 * 16, half = warp % 2 * 64;
  const int part = warp % 2 * 32; // of the elements of dk and dv; their keys are `own` too
  const ScoreEffects effects(w, b, h);
  float dk[4][4] = {}, dv[4][4] = {};
  copyTile(k, w.k, b, h, j0, w.keys);
  copyTile(v, w.v, b, h, j0, w.keys);
  for (int i0 = 0; i0 < w.queries; i0 += kSide) {
    if (i0)
      __syncthreads(); // the tile before is used up
    const int first = firstDistance(i0, j0, w.keys);
    copyTile(q, w.q, b, h, i0, w.queries);
    if (work.posQuery.data)
      copyDistances(posQuery, work.posQuery, h, first, distances);
    copyTile(dout, w.dout, b, h, i0, w.queries);
    closeGroup();
    if (work.posKey.data)
      copyDistances(posKey, work.posKey, h, first, distances);
    closeGroup();
    const int rowOfLane = i0 + own + lane / 4;
    const bool real[2] = {rowOfLane < w.queries, rowOfLane + 8 < w.queries};
    const int rows[2] = {real[0] ? rowOfLane : 0, real[1] ? rowOfLane + 8 : 0};
    auto shiftOf = [&](int side) {
      return RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[side]), w.keys, real[side]);
    };
    const RowShift shifts[2] = {shiftOf(0), shiftOf(1)};
    waitForGroups<1>();
    __syncthreads();
    sumDeltas(deltas, w, b, h, i0, dout);
    float p[8][4];
    scoresOfTile<T>(p, q, k, work.posKey.data ? posKey : nullptr, work.posQuery.data ? posQuery : nullptr, bands);
    const float rowDeltas[2] = {deltas[own + lane / 4], deltas[own + lane / 4 + 8]};
    uint32_t probabilities[8][2], differences[8][2];
#pragma unroll
    for (int quarter = 0; quarter < 8; quarter += 4) { // 32 keys, for want of registers
      float ds[4][4] = {};
      multiplyRows<T, kDepth>(ds, dout + own * kRowPitch, v + (half + quarter * 8) * kRowPitch);
#pragma unroll
      for (int n = quarter; n < quarter + 4; ++n) {
        const int j = j0 + half + n * 8 + lane % 4 * 2;
        float2 keeps[2] = {{1, 1}, {1, 1}};
        if (effects.drops())
          effects.keepPairs(keeps, rows, j);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          float one = p[n][2 * side], two = p[n][2 * side + 1];
          const float2 keep = keeps[side], dp = {ds[n - quarter][2 * side], ds[n - quarter][2 * side + 1]};
          const unsigned hides = effects.scores(one, two, rows[side], j);
          one = shifts[side].probability(one), two = shifts[side].probability(two);
          const float dOne = hides & 1 || j >= w.keys ? 0.0f : one * (keep.x * dp.x - rowDeltas[side]);
          const float dTwo = hides & 2 || j + 1 >= w.keys ? 0.0f : two * (keep.y * dp.y - rowDeltas[side]);
          probabilities[n][side] = packPair(one * keep.x, two * keep.y, T());
          differences[n][side] = packPair(dOne, dTwo, T());
        }
      }
    }
    __syncthreads(); // nobody reads bands any more
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
      if (i0 + r < w.queries && j0 + c < to.pitch)
        *reinterpret_cast<uint4 *>(to.row<T>(w, b, h, i0 + r) + j0 + c) =
            *reinterpret_cast<const uint4 *>(gradients + r * kScorePitch + c);
    }
    if (!work.posQuery.data)
      continue;
    __syncthreads(); // the probabilities are used up
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
  storePart<T>(w.dk, b, h, j0 + own, w.keys, part, dk, float(w.scale));
  storePart<T>(w.dv, b, h, j0 + own, w.keys, part, dv, 1.0f);
}

constexpr int kBytes = (4 * kTileSize + 2 * kDistancesSize) * 2 + kBandBytes + kSide * 4;
static_assert(kBytes <= kMostAttentionShared);
static_assert((kWideBandSize + kScoresSize) * 2 <= kBandBytes && kScoresSize <= kWideBandSize);

} // namespace

cudaError_t prepareGradKeys(const RelativeWork &w) {
  return takesBf16(w) ? allowShared(gradKeys<__nv_bfloat16>) : allowShared(gradKeys<__half>);
}

cudaError_t enqueueGradKeys(const RelativeWork &w, const GradientScores &to, cudaStream_t stream) {
  const dim3 grid(unsigned(w.base.batch) * w.base.heads * tilesOf(w.base.keys));
  return takesBf16(w) ? enqueue(gradKeys<__nv_bfloat16>, grid, kThreads, kBytes, stream, w, to)
                      : enqueue(gradKeys<__half>, grid, kThreads, kBytes, stream, w, to);
}

} // namespace shardc::cuda::relative
