// SPDX-License-Identifier: Apache-2.0
// The gradient of attention with at most 128 queries, of 16-bit heads of 64 or 128 elements: one block for a head,
// which computes each probability once. Eight warps own 16 queries each. For every tile of 32 keys they leave the
// probabilities and the gradient of the scores in shared memory, from which they then make the tile's dv and dk, each
// warp a part of one; dq stays in registers.
#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 256, kRows = kMostTogether, kWidth = 32, kBlocks = kWidth / 8;
static_assert(kRows == kThreads / kWarp * 16);

/// x[16, 8 N] += a^T b: `a` has kRows rows of pitch kPitch<kWidth>, `b` of pitch kPitch<kDepth>; the first `rows` of
/// them count.
template <typename T, int kDepth, int N>
__device__ inline void multiplyTransposed(float (&x)[N][4], const T *a, const T *b, int rows) {
  const int lane = threadIdx.x % kWarp;
  const T *rowA = a + (lane % 8 + lane / 16 * 8) * kPitch<kWidth> + lane / 8 % 2 * 8;
  const T *rowB = b + (lane % 16) * kPitch<kDepth> + lane / 16 * 8;
  for (int r = 0; r < rows; r += 16) {
    uint32_t left[4];
    loadTransposed(left, rowA + r * kPitch<kWidth>);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t right[4];
      loadTransposed(right, rowB + r * kPitch<kDepth> + n * 8);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

template <typename T, int kDepth>
__global__ void __launch_bounds__(kThreads, kDepth == 64 ? 2 : 1)
    gradTogether(AttentionWork w, float *delta, ScoreGradients scores) {
  awaitStream();
  constexpr int kRowTile = kRows * kPitch<kDepth>, kTileSize = kWidth * kPitch<kDepth>;
  const int h = blockIdx.x % w.heads, b = blockIdx.x / w.heads;
  const long long head = blockIdx.x;
  T *q = dynamicShared<T>(), *dout = q + kRowTile, *keys = dout + kRowTile; // two pairs of tiles of k and v
  T *dropped = keys + 4 * kTileSize, *gradients = dropped + kRows * kPitch<kWidth>;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const ScoreEffects effects(w, b, h);
  auto begin = [&](int tile, T *to) {
    copyRows<T, kDepth, kWidth, kThreads>(to, w.k, b, h, tile, w.keys);
    copyRows<T, kDepth, kWidth, kThreads>(to + kTileSize, w.v, b, h, tile, w.keys);
  };
  copyRows<T, kDepth, kRows, kThreads>(q, w.q, b, h, 0, w.queries);
  copyRows<T, kDepth, kRows, kThreads>(dout, w.dout, b, h, 0, w.queries);
  begin(0, keys);
  waitForCopies();
  __syncthreads();
  const float sum = rowDelta<T, kDepth>(w, b, h, 0, dout);
  if (threadIdx.x % 2 == 0 && threadIdx.x / 2 < w.queries)
    delta[head * w.queries + threadIdx.x / 2] = sum;
  const float deltas[2] = {__shfl_sync(0xffffffffu, sum, lane / 4 * 2),
                           __shfl_sync(0xffffffffu, sum, lane / 4 * 2 + 16)};
  const int rowOfLane = warp * 16 + lane / 4;
  const bool real[2] = {rowOfLane < w.queries, rowOfLane + 8 < w.queries};
  const int rows[2] = {real[0] ? rowOfLane : 0, real[1] ? rowOfLane + 8 : 0};
  auto shiftOf = [&](int half) {
    return RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[half]), w.keys, real[half]);
  };
  const RowShift shifts[2] = {shiftOf(0), shiftOf(1)};
  // In the second half of a tile: dv or dk, 16 keys, half of the elements.
  const bool makesKeys = warp % 2;
  const int part = warp / 2 % 2 * 16, side = warp / 4 * (kDepth / 2);
  float dq[kDepth / 8][4] = {};
  for (int tile = 0; tile < w.keys; tile += kWidth) {
    const T *k = keys + tile / kWidth % 2 * 2 * kTileSize, *v = k + kTileSize;
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (tile + kWidth < w.keys)
      begin(tile + kWidth, keys + (tile / kWidth + 1) % 2 * 2 * kTileSize);
    float p[kBlocks][4] = {}, ds[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, q + warp * 16 * kPitch<kDepth>, k);
    multiplyRows<T, kDepth>(ds, dout + warp * 16 * kPitch<kDepth>, v);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      const int column = n * 8 + lane % 4 * 2, j = tile + column;
      float2 keeps[2] = {{1, 1}, {1, 1}};
      if (effects.drops())
        effects.keepPairs(keeps, rows, j);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = rows[half];
        const float2 keep = keeps[half];
        float &one = p[n][2 * half], &two = p[n][2 * half + 1], &dOne = ds[n][2 * half], &dTwo = ds[n][2 * half + 1];
        const unsigned hides = effects.scores(one, two, i, j);
        one = shifts[half].probability(one), two = shifts[half].probability(two);
        dOne = one * (keep.x * dOne - deltas[half]);
        dTwo = two * (keep.y * dTwo - deltas[half]);
        const float shownOne = hides & 1 ? 0.0f : dOne, shownTwo = hides & 2 ? 0.0f : dTwo;
        if (scores.array.data && real[half] && j < w.keys)
          storeScores<T>(scores, (head * w.queries + i) * w.keys + j, shownOne, shownTwo, j + 1 < w.keys);
        if (!w.maskAdds)
          dOne = shownOne, dTwo = shownTwo;
        const int at = (rowOfLane + half * 8) * kPitch<kWidth> + column;
        *reinterpret_cast<uint32_t *>(dropped + at) = packPair(one * keep.x, two * keep.y, T());
        *reinterpret_cast<uint32_t *>(gradients + at) = packPair(dOne, dTwo, T());
      }
    }
    multiplyColumns<T, kDepth>(dq, ds, k);
    __syncthreads(); // all rows of the tile are there
    float x[kDepth / 16][4] = {};
    multiplyTransposed<T, kDepth>(x, (makesKeys ? gradients : dropped) + part, (makesKeys ? q : dout) + side,
                                  w.queries);
    const HeadsView &to = makesKeys ? w.dk : w.dv;
    const float factor = makesKeys ? float(w.scale) : 1.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int j = tile + part + lane / 4 + half * 8;
      if (j >= w.keys)
        continue;
      T *row = static_cast<T *>(to.data) + b * to.batch + h * to.head + j * to.row + side + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kDepth / 16; ++n)
        *reinterpret_cast<uint32_t *>(row + n * 8) =
            packPair(x[n][2 * half] * factor, x[n][2 * half + 1] * factor, T());
    }
  }
  const float factor[2] = {float(w.scale), float(w.scale)};
  storeRows<T, kDepth>(w.dq, b, h, warp * 16, w.queries, dq, factor);
}

template <int kDepth> constexpr int kBytes = ((2 * kRows + 4 * kWidth) * kPitch<kDepth> + 2 * kRows * kPitch<kWidth>)*2;

} // namespace

cudaError_t prepareGradTogether(const AttentionWork &w) {
  return withMma(
      w, [&](auto type, auto depth) { return allowShared(gradTogether<decltype(type), decltype(depth)::value>); });
}

cudaError_t enqueueGradTogether(const AttentionWork &w, float *delta, const ScoreGradients &scores,
                                cudaStream_t stream) {
  return withMma(w, [&](auto type, auto depth) {
    constexpr int kDepth = decltype(depth)::value;
    return enqueue(gradTogether<decltype(type), kDepth>, dim3(unsigned(w.batch) * w.heads), kThreads, kBytes<kDepth>,
                   stream, w, delta, scores);
  });
}

} // namespace shardc::cuda
