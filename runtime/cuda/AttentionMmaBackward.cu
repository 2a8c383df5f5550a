// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 or 128 elements by the tensor cores: by one kernel where that serves
// (AttentionMmaTogether.cu), else by two, which compute the
// probabilities again from lse: blocks of 64 queries walk over the keys for dq, blocks of 64 keys over the queries for
// dk and dv. The first also leaves the gradient of the scores, of which the bias's is a sum over batches and heads in
// their order.
#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// Columns of a tile.
constexpr int kWidth = 32, kBlocks = kWidth / 8;

template <typename T, int kDepth>
__global__ void __launch_bounds__(kMmaThreads, kDepth == 64 ? 4 : 2)
    gradQueriesMma(AttentionWork w, float *delta, ScoreGradients scores) {
  awaitStream();
  constexpr int kRowTile = kMmaRows * kPitch<kDepth>, kTileSize = kWidth * kPitch<kDepth>;
  const int tiles = (w.queries + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const long long head = (long long)(b)*w.heads + h;
  T *q = dynamicShared<T>(), *dout = q + kRowTile, *keys = dout + kRowTile; // then two pairs of tiles of k and v
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const ScoreEffects effects(w, b, h);
  auto begin = [&](int tile, T *to) {
    copyRows<T, kDepth, kWidth>(to, w.k, b, h, tile, w.keys);
    copyRows<T, kDepth, kWidth>(to + kTileSize, w.v, b, h, tile, w.keys);
  };
  copyRows<T, kDepth, kMmaRows>(q, w.q, b, h, first, w.queries);
  copyRows<T, kDepth, kMmaRows>(dout, w.dout, b, h, first, w.queries);
  begin(0, keys);
  waitForCopies();
  __syncthreads();
  const float sum = rowDelta<T, kDepth>(w, b, h, first, dout);
  if (threadIdx.x % 2 == 0 && first + int(threadIdx.x / 2) < w.queries)
    delta[head * w.queries + first + threadIdx.x / 2] = sum;
  const float deltas[2] = {__shfl_sync(0xffffffffu, sum, lane / 4 * 2),
                           __shfl_sync(0xffffffffu, sum, lane / 4 * 2 + 16)};
  const int rowOfLane = first + warp * 16 + lane / 4;
  const bool real[2] = {rowOfLane < w.queries, rowOfLane + 8 < w.queries};
  const int rows[2] = {real[0] ? rowOfLane : 0, real[1] ? rowOfLane + 8 : 0};
  auto shiftOf = [&](int half) {
    return RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[half]), w.keys, real[half]);
  };
  const RowShift shifts[2] = {shiftOf(0), shiftOf(1)};
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
      const int j = tile + n * 8 + lane % 4 * 2;
      float2 keeps[2] = {{1, 1}, {1, 1}};
      if (effects.drops())
        effects.keepPairs(keeps, rows, j);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = rows[half];
        float &one = p[n][2 * half], &two = p[n][2 * half + 1], &dOne = ds[n][2 * half], &dTwo = ds[n][2 * half + 1];
        const unsigned hides = effects.scores(one, two, i, j);
        dOne *= keeps[half].x, dTwo *= keeps[half].y;
        dOne = shifts[half].probability(one) * (dOne - deltas[half]);
        dTwo = shifts[half].probability(two) * (dTwo - deltas[half]);
        const float shownOne = hides & 1 ? 0.0f : dOne, shownTwo = hides & 2 ? 0.0f : dTwo;
        if (scores.array.data && real[half] && j < w.keys)
          storeScores<T>(scores, (head * w.queries + i) * w.keys + j, shownOne, shownTwo, j + 1 < w.keys);
        if (!w.maskAdds)
          dOne = shownOne, dTwo = shownTwo;
      }
    }
    multiplyColumns<T, kDepth>(dq, ds, k);
  }
  const float factor[2] = {float(w.scale), float(w.scale)};
  storeRows<T, kDepth>(w.dq, b, h, first + warp * 16, w.queries, dq, factor);
}

template <typename T, int kDepth>
__global__ void __launch_bounds__(kMmaThreads, kDepth == 64 ? 3 : 2) gradKeysMma(AttentionWork w, const float *delta) {
  awaitStream();
  constexpr int kRowTile = kMmaRows * kPitch<kDepth>, kTileSize = kWidth * kPitch<kDepth>;
  __shared__ RowShift shifts[2][kWidth];
  __shared__ float deltas[2][kWidth];
  const int tiles = (w.keys + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const long long head = (long long)(b)*w.heads + h;
  T *k = dynamicShared<T>(), *v = k + kRowTile, *queries = v + kRowTile; // then two pairs of tiles of q and dout
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, rowOfLane = first + warp * 16 + lane / 4;
  const ScoreEffects effects(w, b, h);
  auto begin = [&](int tile, int which) {
    T *to = queries + which * 2 * kTileSize;
    copyRows<T, kDepth, kWidth>(to, w.q, b, h, tile, w.queries);
    copyRows<T, kDepth, kWidth>(to + kTileSize, w.dout, b, h, tile, w.queries);
    if (threadIdx.x < kWidth) {
      const int c = threadIdx.x, i = min(tile + c, w.queries - 1);
      shifts[which][c] = RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + i), w.keys, tile + c < w.queries);
      deltas[which][c] = delta[head * w.queries + i];
    }
  };
  copyRows<T, kDepth, kMmaRows>(k, w.k, b, h, first, w.keys);
  copyRows<T, kDepth, kMmaRows>(v, w.v, b, h, first, w.keys);
  if (w.queries > 0)
    begin(0, 0);
  // Rows beyond the last key compute what nobody reads; columns beyond the last query have probabilities of 0.
  const int rows[2] = {min(rowOfLane, w.keys - 1), min(rowOfLane + 8, w.keys - 1)};
  const bool masksKeys = effects.masksKeys();
  const bool hides[2] = {masksKeys && effects.hidden(0, rows[0]), masksKeys && effects.hidden(0, rows[1])};
  float dk[kDepth / 8][4] = {}, dv[kDepth / 8][4] = {};
  for (int tile = 0; tile < w.queries; tile += kWidth) {
    const int which = tile / kWidth % 2;
    const T *q = queries + which * 2 * kTileSize, *dout = q + kTileSize;
    waitForCopies();
    __syncthreads(); // this tile is there, and the one before is used up
    if (tile + kWidth < w.queries)
      begin(tile + kWidth, 1 - which);
    // Transposed: rows are keys, columns queries.
    float p[kBlocks][4] = {}, ds[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, k + warp * 16 * kPitch<kDepth>, q);
    multiplyRows<T, kDepth>(ds, v + warp * 16 * kPitch<kDepth>, dout);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = rows[e / 2], column = n * 8 + lane % 4 * 2 + e % 2, i = min(tile + column, w.queries - 1);
        const bool hidden = masksKeys ? hides[e / 2] : effects.hidden(i, j);
        const float one = shifts[which][column].probability(effects.score(p[n][e], i, j, hidden));
        const float keep = effects.drops() ? effects.keepOne(i, j) : 1.0f;
        p[n][e] = one * keep;
        ds[n][e] = hidden && !w.maskAdds ? 0.0f : one * (keep * ds[n][e] - deltas[which][column]);
      }
    multiplyColumns<T, kDepth>(dv, p, dout);
    multiplyColumns<T, kDepth>(dk, ds, q);
  }
  const float scale[2] = {float(w.scale), float(w.scale)}, one[2] = {1, 1};
  storeRows<T, kDepth>(w.dk, b, h, first + warp * 16, w.keys, dk, scale);
  storeRows<T, kDepth>(w.dv, b, h, first + warp * 16, w.keys, dv, one);
}

/// dbias[b0, h0, i, j] = the sum over the batches, then heads, in which the bias is broadcast.
template <typename T> __global__ void __launch_bounds__(kMmaThreads) addScores(AttentionWork w, const T *scores) {
  awaitStream();
  const long long *s = w.dbias.strides, each = (long long)(w.queries) * w.keys;
  const long long at = blockIdx.x * (long long)(kMmaThreads) + threadIdx.x;
  if (at >= each)
    return;
  const bool ownBatch = s[0], ownHead = s[1];
  const int h0 = ownHead ? blockIdx.y : 0, b0 = ownBatch ? blockIdx.z : 0;
  float sum = 0;
  for (int h = h0; h < (ownHead ? h0 + 1 : w.heads); ++h) {
    const T *from = scores + h * each + at;
#pragma unroll 8
    for (int b = b0; b < (ownBatch ? b0 + 1 : w.batch); ++b)
      sum += widen(from[b * (w.heads * each)]);
  }
  store(w.dbias.array, b0 * s[0] + h0 * s[1] + at / w.keys * s[2] + at % w.keys * s[3], sum);
}

/// How dbias comes about.
enum class BiasGrad { None, Direct, Summed, EveryCase };

BiasGrad biasGradOf(const AttentionWork &w) {
  const long long *s = w.dbias.strides;
  if (!w.dbias.array.data)
    return BiasGrad::None;
  if ((s[2] == 0 && w.queries > 1) || (s[3] == 0 && w.keys > 1))
    return BiasGrad::EveryCase;
  return (s[0] || w.batch == 1) && (s[1] || w.heads == 1) ? BiasGrad::Direct : BiasGrad::Summed;
}

long long deltaBytes(const AttentionWork &w) {
  return ((long long)(w.batch) * w.heads * w.queries * 4 + 255) / 256 * 256;
}

template <int kDepth> constexpr int kBytes = (2 * kMmaRows + 4 * kWidth) * kPitch<kDepth> * 2;

/// Half of the warps of its blocks have rows, at least.
bool together(const AttentionWork &w) { return w.queries > kMostTogether / 2 && w.queries <= kMostTogether; }

template <typename T, int kDepth> cudaError_t enqueueSized(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  const unsigned all = unsigned(w.batch) * w.heads;
  float *delta = static_cast<float *>(scratch);
  T *kept = reinterpret_cast<T *>(static_cast<char *>(scratch) + deltaBytes(w));
  const BiasGrad bias = biasGradOf(w);
  ScoreGradients scores = {{nullptr, w.type}, false};
  if (bias == BiasGrad::Direct)
    scores.array = w.dbias.array;
  else if (bias == BiasGrad::Summed)
    scores.array.data = kept;
  scores.pairs =
      scores.array.type == w.type && w.keys % 2 == 0 && reinterpret_cast<uintptr_t>(scores.array.data) % 4 == 0;
  cudaError_t code;
  if (together(w)) {
    code = enqueueGradTogether(w, delta, scores, stream);
  } else {
    code = enqueue(gradQueriesMma<T, kDepth>, dim3(all * blocksFor(w.queries, kMmaRows)), kMmaThreads, kBytes<kDepth>,
                   stream, w, delta, scores);
    if (code == cudaSuccess)
      code = enqueue(gradKeysMma<T, kDepth>, dim3(all * blocksFor(w.keys, kMmaRows)), kMmaThreads, kBytes<kDepth>,
                     stream, w, delta);
  }
  if (code == cudaSuccess && bias == BiasGrad::EveryCase)
    code = enqueueAttentionBiasGrad(w, delta, stream);
  if (code == cudaSuccess && bias == BiasGrad::Summed) {
    const long long *s = w.dbias.strides;
    const dim3 grid(blocksFor((long long)(w.queries) * w.keys, kMmaThreads), s[1] ? w.heads : 1, s[0] ? w.batch : 1);
    code = enqueue(addScores<T>, grid, kMmaThreads, 0, stream, w, kept);
  }
  return code;
}

} // namespace

long long attentionGradMmaScratch(const AttentionWork &w) {
  const long long scores = biasGradOf(w) == BiasGrad::Summed ? 2ll * w.batch * w.heads * w.queries * w.keys : 0;
  return deltaBytes(w) + scores;
}

cudaError_t prepareAttentionGradMma(const AttentionWork &w) {
  if (cudaError_t code = prepareAttentionGrad(w); code != cudaSuccess)
    return code;
  if (cudaError_t code = prepareGradTogether(w); code != cudaSuccess)
    return code;
  return withMma(w, [&](auto type, auto depth) {
    using T = decltype(type);
    constexpr int kDepth = decltype(depth)::value;
    const int bytes = kBytes<kDepth>; // static shared memory lies beside it
    cudaError_t code =
        cudaFuncSetAttribute(gradQueriesMma<T, kDepth>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return code == cudaSuccess
               ? cudaFuncSetAttribute(gradKeysMma<T, kDepth>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)
               : code;
  });
}

cudaError_t enqueueAttentionGradMma(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  return withMma(w, [&](auto type, auto depth) {
    return enqueueSized<decltype(type), decltype(depth)::value>(w, scratch, stream);
  });
}

} // namespace shardc::cuda
