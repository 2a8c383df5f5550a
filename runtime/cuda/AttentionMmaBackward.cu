// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 or 128 elements by the tensor cores. Two kernels compute the
// probabilities again from lse: blocks of 64 queries walk over the keys for dq, blocks of 64 keys over the queries for
// dk and dv. The first also leaves the gradient of the scores, of which the bias's is a sum over batches and heads in
// their order.
#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// Columns of a tile: fewer where the rows' own sums take more registers.
template <int kDepth> constexpr int kColumns = kDepth == 64 ? 64 : 32;

/// Where gradQueriesMma leaves the gradient of score ((b H + h) Sq + i) Sk + j; data is null: nowhere.
struct ScoreGradients {
  AnyFloats array;
  bool pairs; ///< 16-bit, and rows of an even number of keys
};

template <typename T>
__device__ inline void storeScores(const ScoreGradients &to, long long at, float first, float second, bool both) {
  if (both && to.pairs) {
    *reinterpret_cast<uint32_t *>(static_cast<T *>(to.array.data) + at) = packPair(first, second, T());
    return;
  }
  store(to.array, at, first);
  if (both)
    store(to.array, at + 1, second);
}

template <typename T, int kDepth>
__global__ void __launch_bounds__(kMmaThreads) gradQueriesMma(AttentionWork w, float *delta, ScoreGradients scores) {
  constexpr int kWidth = kColumns<kDepth>, kBlocks = kWidth / 8;
  __shared__ float sums[kMmaRows];
  const int tiles = (w.queries + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const long long head = (long long)(b)*w.heads + h;
  T *q = dynamicShared<T>(), *dout = q + kMmaRows * kPitch<kDepth>, *k = dout + kMmaRows * kPitch<kDepth>,
    *v = k + kWidth * kPitch<kDepth>;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const ScoreEffects effects(w, b, h);
  loadRows<T, kDepth, kMmaRows>(q, w.q, b, h, first, w.queries);
  loadRows<T, kDepth, kMmaRows>(dout, w.dout, b, h, first, w.queries);
  __syncthreads();
  { // Two lanes a row: delta = sum of dout out.
    const int row = threadIdx.x / 2, begin = threadIdx.x % 2 * (kDepth / 2);
    float sum = 0;
    if (first + row < w.queries) {
      const T *out =
          static_cast<const T *>(w.out.data) + b * w.out.batch + h * w.out.head + (first + row) * w.out.row + begin;
#pragma unroll
      for (int c = 0; c < kDepth / 2; c += 8) {
        const Widest<T> several = *reinterpret_cast<const Widest<T> *>(out + c);
#pragma unroll
        for (int l = 0; l < 8; ++l)
          sum += widen(several.at[l]) * widen(dout[row * kPitch<kDepth> + begin + c + l]);
      }
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (threadIdx.x % 2 == 0) {
      sums[row] = sum;
      if (first + row < w.queries)
        delta[head * w.queries + first + row] = sum;
    }
  }
  __syncthreads();
  float lse[2], rowDelta[2];
  int rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows[half] = first + warp * 16 + lane / 4 + half * 8;
    rowDelta[half] = sums[rows[half] - first];
    lse[half] = rows[half] < w.queries ? load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[half]) : 0.0f;
  }
  float dq[kDepth / 8][4] = {};
  for (int begin = 0; begin < w.keys; begin += kWidth) {
    if (begin)
      __syncthreads(); // the tiles before are used up
    loadRows<T, kDepth, kWidth>(k, w.k, b, h, begin, w.keys);
    loadRows<T, kDepth, kWidth>(v, w.v, b, h, begin, w.keys);
    __syncthreads();
    float p[kBlocks][4] = {}, ds[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, q + warp * 16 * kPitch<kDepth>, k);
    multiplyRows<T, kDepth>(ds, dout + warp * 16 * kPitch<kDepth>, v);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = rows[half], j = begin + n * 8 + lane % 4 * 2;
        float2 keep = {1, 1};
        if (effects.drops())
          keep = effects.keepPair(i, j);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &x = ds[n][2 * half + e];
          const bool counts = i < w.queries && j + e < w.keys;
          const float one = counts ? probability(effects.score(p[n][2 * half + e], i, j + e), lse[half], w.keys) : 0.0f;
          x = counts && !effects.hidden(i, j + e) ? one * ((e ? keep.y : keep.x) * x - rowDelta[half]) : 0.0f;
        }
        if (scores.array.data && i < w.queries && j < w.keys)
          storeScores<T>(scores, (head * w.queries + i) * w.keys + j, ds[n][2 * half], ds[n][2 * half + 1],
                         j + 1 < w.keys);
      }
    multiplyColumns<T, kDepth>(dq, ds, k);
  }
  const float factor[2] = {float(w.scale), float(w.scale)};
  storeRows<T, kDepth>(w.dq, b, h, first + warp * 16, w.queries, dq, factor);
}

template <typename T, int kDepth>
__global__ void __launch_bounds__(kMmaThreads) gradKeysMma(AttentionWork w, const float *delta) {
  constexpr int kWidth = kColumns<kDepth>, kBlocks = kWidth / 8;
  __shared__ float lse[kWidth], columnDelta[kWidth];
  const int tiles = (w.keys + kMmaRows - 1) / kMmaRows;
  const int first = blockIdx.x % tiles * kMmaRows, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const long long head = (long long)(b)*w.heads + h;
  T *k = dynamicShared<T>(), *v = k + kMmaRows * kPitch<kDepth>, *q = v + kMmaRows * kPitch<kDepth>,
    *dout = q + kWidth * kPitch<kDepth>;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, rowOfLane = first + warp * 16 + lane / 4;
  const ScoreEffects effects(w, b, h);
  loadRows<T, kDepth, kMmaRows>(k, w.k, b, h, first, w.keys);
  loadRows<T, kDepth, kMmaRows>(v, w.v, b, h, first, w.keys);
  float dk[kDepth / 8][4] = {}, dv[kDepth / 8][4] = {};
  for (int begin = 0; begin < w.queries; begin += kWidth) {
    if (begin)
      __syncthreads(); // the tiles before are used up
    loadRows<T, kDepth, kWidth>(q, w.q, b, h, begin, w.queries);
    loadRows<T, kDepth, kWidth>(dout, w.dout, b, h, begin, w.queries);
    for (int c = threadIdx.x; c < kWidth; c += kMmaThreads) {
      const int i = begin + c;
      lse[c] = i < w.queries ? load<float>(w.lse, b * w.lseBatch + h * w.lseHead + i) : 0.0f;
      columnDelta[c] = i < w.queries ? delta[head * w.queries + i] : 0.0f;
    }
    __syncthreads();
    // Transposed: rows are keys, columns queries.
    float p[kBlocks][4] = {}, ds[kBlocks][4] = {};
    multiplyRows<T, kDepth>(p, k + warp * 16 * kPitch<kDepth>, q);
    multiplyRows<T, kDepth>(ds, v + warp * 16 * kPitch<kDepth>, dout);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = rowOfLane + e / 2 * 8, column = n * 8 + lane % 4 * 2 + e % 2, i = begin + column;
        float dropped = 0, gradient = 0;
        if (i < w.queries && j < w.keys) {
          const float one = probability(effects.score(p[n][e], i, j), lse[column], w.keys);
          const float keep = effects.drops() ? effects.keepOne(i, j) : 1.0f;
          dropped = one * keep;
          gradient = effects.hidden(i, j) ? 0.0f : one * (keep * ds[n][e] - columnDelta[column]);
        }
        p[n][e] = dropped;
        ds[n][e] = gradient;
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

template <int kDepth> constexpr int kBytes = 2 * (kMmaRows + kColumns<kDepth>)*kPitch<kDepth> * 2;

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
  cudaError_t code = enqueue(gradQueriesMma<T, kDepth>, dim3(all * blocksFor(w.queries, kMmaRows)), kMmaThreads,
                             kBytes<kDepth>, stream, w, delta, scores);
  if (code == cudaSuccess)
    code = enqueue(gradKeysMma<T, kDepth>, dim3(all * blocksFor(w.keys, kMmaRows)), kMmaThreads, kBytes<kDepth>, stream,
                   w, delta);
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
