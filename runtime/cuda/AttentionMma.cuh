// SPDX-License-Identifier: Apache-2.0
// What the tensor-core kernels of attention share. A block has four warps; each owns 16 rows of a tile of 64, against
// tiles of kColumns columns. Tiles lie in shared memory in 16 bits; scores, probabilities and sums in registers as f32,
// where lane l of a warp holds x[n][e] = element (l / 4 + 8 (e / 2), 8 n + 2 (l % 4) + e % 2) of its rows.
#pragma once

#include "ir/base/Philox.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Intrinsics.cuh"
#include "runtime/cuda/Numbers.cuh"
#include <type_traits>

namespace shardc::cuda {

constexpr int kMmaThreads = 128, kMmaRows = 64;

/// Elements from row to row of a tile: 16 bytes more than the row, so that the rows of a small matrix lie in different
/// banks.
template <int kDepth> constexpr int kPitch = kDepth + 8;

/// to[kRows][kPitch] = rows [first, first + kRows) of a head, zeros from row `end` on: begun, see waitForCopies.
template <typename T, int kDepth, int kRows, int kThreads = kMmaThreads>
__device__ inline void copyRows(T *to, const HeadsView &from, int b, int h, int first, int end) {
  constexpr int kWide = 8, kEach = kDepth / kWide; // 16 bytes
  const T *base = static_cast<const T *>(from.data) + b * from.batch + h * from.head;
#pragma unroll
  for (int e = threadIdx.x; e < kRows * kEach; e += kThreads) {
    const int r = e / kEach, c = e % kEach * kWide;
    const bool real = first + r < end;
    copyAsync(to + r * kPitch<kDepth> + c, base + (real ? first + r : 0) * from.row + c, real);
  }
}

/// x += a b^T for the 16 rows at `a` and 8 N rows at `b`.
template <typename T, int kDepth, int N> __device__ inline void multiplyRows(float (&x)[N][4], const T *a, const T *b) {
  const int lane = threadIdx.x % kWarp;
  const T *rowA = a + (lane % 16) * kPitch<kDepth> + lane / 16 * 8;
  const T *rowB = b + (lane % 8 + lane / 16 * 8) * kPitch<kDepth> + lane / 8 % 2 * 8;
#pragma unroll
  for (int d = 0; d < kDepth; d += 16) {
    uint32_t left[4], right[4];
    loadMatrices(left, rowA + d);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadMatrices(right, rowB + n * 8 * kPitch<kDepth> + d);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

/// x += round(p) b for the 8 N rows at `b`, kDepth wide.
template <typename T, int kDepth, int N>
__device__ inline void multiplyColumns(float (&x)[kDepth / 8][4], const float (&p)[N][4], const T *b) {
  const int lane = threadIdx.x % kWarp;
  const T *rowB = b + (lane % 16) * kPitch<kDepth> + lane / 16 * 8;
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    const uint32_t left[4] = {packPair(p[n][0], p[n][1], T()), packPair(p[n][2], p[n][3], T()),
                              packPair(p[n + 1][0], p[n + 1][1], T()), packPair(p[n + 1][2], p[n + 1][3], T())};
#pragma unroll
    for (int d = 0; d < kDepth / 8; d += 2) {
      uint32_t right[4];
      loadTransposed(right, rowB + n * 8 * kPitch<kDepth> + d * 8);
      multiplyAdd(x[d], left, right[0], right[1], T());
      multiplyAdd(x[d + 1], left, right[2], right[3], T());
    }
  }
}

/// The result of a warp: its 16 rows, from row `first` of the head, multiplied by factor[0] (rows l / 4) and factor[1]
/// (8 more).
template <typename T, int kDepth>
__device__ inline void storeRows(const HeadsView &to, int b, int h, int first, int end, const float (&x)[kDepth / 8][4],
                                 const float (&factor)[2]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= end)
      continue;
    T *at = static_cast<T *>(to.data) + b * to.batch + h * to.head + row * to.row + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kDepth / 8; ++n)
      *reinterpret_cast<uint32_t *>(at + n * 8) =
          packPair(x[n][2 * half] * factor[half], x[n][2 * half + 1] * factor[half], T());
  }
}

constexpr float kLog2E = 1.44269504f;

/// What is added to scores, hides them and drops probabilities, of one head.
class ScoreEffects {
public:
  __device__ ScoreEffects(const AttentionWork &w, int b, int h)
      : w_(w), scale_(float(w.scale)), fill_(float(w.fill)), bias_(b * w.bias.strides[0] + h * w.bias.strides[1]),
        mask_(b * w.mask.strides[0] + h * w.mask.strides[1]) {
    if (w.dropout > 0) {
      draw_ = DropoutDraw((uint64_t)(w.scalars[kSeed]), (uint64_t)(w.scalars[kStep]), w.id, w.dropout);
      start_ = dropoutStart(w.batchMajor, (uint64_t)(w.scalars[kShardIndex]),
                            (uint64_t)(w.batch) * w.heads * w.queries * w.keys) +
               ((uint64_t)(b)*w.heads + h) * w.queries * w.keys;
    }
  }

  /// In: products of query i with keys j and j + 1. Out: scores, -inf from the last key on; bits 0 and 1 of the result
  /// say which are hidden. Requires: i < queries, j even.
  __device__ unsigned scores(float &first, float &second, int i, int j) const {
    first *= scale_, second *= scale_;
    if (j + 1 < w_.keys) {
      if (w_.bias.array.data) {
        const float2 bias = biasPair(i, j);
        first += bias.x, second += bias.y;
      }
      if (!w_.mask.array.data)
        return 0;
      const unsigned hides = unsigned(hidden(i, j)) | unsigned(hidden(i, j + 1)) << 1;
      first = hides & 1 ? fill_ : first;
      second = hides & 2 ? fill_ : second;
      return hides;
    }
    second = -INFINITY;
    const bool hides = j < w_.keys && hidden(i, j);
    first = j >= w_.keys ? -INFINITY : hides ? fill_ : first + (w_.bias.array.data ? biasOne(i, j) : 0.0f);
    return hides;
  }
  /// Of one product. Requires: i < queries, j < keys.
  __device__ float score(float product, int i, int j, bool hides) const {
    product *= scale_;
    if (w_.bias.array.data)
      product += biasOne(i, j);
    return hides ? fill_ : product;
  }
  __device__ bool masks() const { return w_.mask.array.data; }
  /// Does the mask hide the same keys from all queries?
  __device__ bool masksKeys() const { return w_.mask.strides[2] == 0; }
  /// Requires: i < queries, j < keys.
  __device__ bool hidden(int i, int j) const {
    return w_.mask.array.data && !static_cast<const unsigned char *>(
                                     w_.mask.array.data)[mask_ + i * w_.mask.strides[2] + j * w_.mask.strides[3]];
  }

  __device__ bool drops() const { return w_.dropout > 0; }
  /// Dropout factors of keys j and j + 1 for queries i[0] and i[1]. The whole warp calls, its lanes with the keys that
  /// they hold of the same columns. Requires: drops().
  __device__ void keepPairs(float2 (&to)[2], const int (&i)[2], int j) const {
    if (w_.keys % 4) {
      to[0] = keepPair(i[0], j), to[1] = keepPair(i[1], j);
      return;
    }
    // Two lanes share the blocks of their four keys: the first draws that of one query, the second that of the other.
    const bool second = threadIdx.x % 2;
    const PhiloxBlock block = draw_.block((start_ + (uint64_t)(second ? i[1] : i[0]) * w_.keys + (j & ~3)) / 4);
    const float2 low = {keep(block[0]), keep(block[1])}, high = {keep(block[2]), keep(block[3])};
    const float2 mine = second ? high : low, given = second ? low : high;
    const float2 got = {__shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1)};
    to[0] = second ? got : mine, to[1] = second ? mine : got;
  }
  __device__ float keepOne(int i, int j) const { return float(draw_.factor(start_ + (uint64_t)(i)*w_.keys + j)); }

private:
  __device__ float2 keepPair(int i, int j) const {
    const uint64_t element = start_ + (uint64_t)(i)*w_.keys + j;
    return {float(draw_.factor(element)), float(draw_.factor(element + 1))};
  }
  __device__ float keep(uint32_t number) const { return number >= draw_.threshold ? float(draw_.scale) : 0.0f; }
  __device__ long long biasAt(int i, int j) const { return bias_ + i * w_.bias.strides[2] + j * w_.bias.strides[3]; }
  __device__ float biasOne(int i, int j) const { return load<float>(w_.bias.array, biasAt(i, j)); }
  __device__ float2 biasPair(int i, int j) const {
    if (!w_.biasPairs)
      return {biasOne(i, j), biasOne(i, j + 1)};
    const long long at = biasAt(i, j);
    if (w_.bias.array.type == ElementType::BF16)
      return pairAt<__nv_bfloat16>(at);
    return w_.bias.array.type == ElementType::F16 ? pairAt<__half>(at) : pairAt<float>(at);
  }
  template <typename B> __device__ float2 pairAt(long long at) const {
    const Pack<B, 2> pair = *reinterpret_cast<const Pack<B, 2> *>(static_cast<const B *>(w_.bias.array.data) + at);
    return {widen(pair.at[0]), widen(pair.at[1])};
  }

  const AttentionWork &w_;
  float scale_, fill_;
  long long bias_, mask_;
  DropoutDraw draw_;
  uint64_t start_ = 0;
};

/// Of a row of scores, from lse as forward left it: probability = exp2(score log2(e) + shift), but `share` where that
/// is not 0.
struct RowShift {
  float shift, share;
  RowShift() = default;
  /// Where not `real`, all probabilities are 0.
  __device__ RowShift(float lse, int keys, bool real) {
    const bool any = real && lse != -INFINITY;
    // Adding log(n) to the lowest float is lost: all scores are equal.
    share = any && lse < -1e30f ? 1.0f / keys : 0.0f;
    shift = any ? -lse * kLog2E : -INFINITY;
  }
  __device__ float probability(float score) const { return share != 0 ? share : exp2Fast(fmaf(score, kLog2E, shift)); }
};

/// Where the gradient of score ((b H + h) Sq + i) Sk + j is left; data is null: nowhere.
struct ScoreGradients {
  AnyFloats array;
  bool pairs; ///< of type T, and rows of an even number of keys
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

/// The sum of dout out of row threadIdx.x / 2 from `first` on, of which `dout` has the tile; 0 beyond the last query.
/// Two lanes a row, so that a warp has its own 16 rows.
template <typename T, int kDepth>
__device__ inline float rowDelta(const AttentionWork &w, int b, int h, int first, const T *dout) {
  const int row = threadIdx.x / 2, from = threadIdx.x % 2 * (kDepth / 2);
  float sum = 0;
  if (first + row < w.queries) {
    const T *out =
        static_cast<const T *>(w.out.data) + b * w.out.batch + h * w.out.head + (first + row) * w.out.row + from;
#pragma unroll
    for (int c = 0; c < kDepth / 2; c += 8) {
      const Widest<T> several = *reinterpret_cast<const Widest<T> *>(out + c);
#pragma unroll
      for (int l = 0; l < 8; ++l)
        sum += widen(several.at[l]) * widen(dout[row * kPitch<kDepth> + from + c + l]);
    }
  }
  return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
}

/// All of the gradient but dbias, for 1 to kMostTogether queries (AttentionMmaTogether.cu).
constexpr int kMostTogether = 128;
cudaError_t prepareGradTogether(const AttentionWork &);
cudaError_t enqueueGradTogether(const AttentionWork &, float *delta, const ScoreGradients &, cudaStream_t);

/// f(an element, the head size as a type). Requires: servesMma.
template <typename F> cudaError_t withMma(const AttentionWork &w, F f) {
  auto withDepth = [&](auto type) {
    return w.depth == 64 ? f(type, std::integral_constant<int, 64>()) : f(type, std::integral_constant<int, 128>());
  };
  return w.type == ElementType::BF16 ? withDepth(__nv_bfloat16()) : withDepth(__half());
}

} // namespace shardc::cuda
