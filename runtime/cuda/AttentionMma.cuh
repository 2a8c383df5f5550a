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

/// to[kRows][kPitch] = rows [first, first + kRows) of a head, zeros from row `end` on. No barrier.
template <typename T, int kDepth, int kRows>
__device__ inline void loadRows(T *to, const HeadsView &from, int b, int h, int first, int end) {
  constexpr int kWide = 8, kEach = kDepth / kWide; // 16 bytes
  const T *base = static_cast<const T *>(from.data) + b * from.batch + h * from.head;
#pragma unroll
  for (int e = threadIdx.x; e < kRows * kEach; e += kMmaThreads) {
    const int r = e / kEach, c = e % kEach * kWide;
    uint4 value = {0, 0, 0, 0};
    if (first + r < end)
      value = *reinterpret_cast<const uint4 *>(base + (first + r) * from.row + c);
    *reinterpret_cast<uint4 *>(to + r * kPitch<kDepth> + c) = value;
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

/// What is added to scores, hides them and drops probabilities, of one head.
class ScoreEffects {
public:
  __device__ ScoreEffects(const AttentionWork &w, int b, int h)
      : w_(w), bias_(b * w.bias.strides[0] + h * w.bias.strides[1]),
        mask_(b * w.mask.strides[0] + h * w.mask.strides[1]) {
    if (w.dropout > 0) {
      draw_ = DropoutDraw((uint64_t)(w.scalars[kSeed]), (uint64_t)(w.scalars[kStep]), w.id, w.dropout);
      start_ = dropoutStart(w.batchMajor, (uint64_t)(w.scalars[kShardIndex]),
                            (uint64_t)(w.batch) * w.heads * w.queries * w.keys) +
               ((uint64_t)(b)*w.heads + h) * w.queries * w.keys;
    }
  }
  /// The score of a product. Requires: i < queries, j < keys.
  __device__ float score(float product, int i, int j) const {
    float score = float(w_.scale) * product;
    if (w_.bias.array.data)
      score += load<float>(w_.bias.array, bias_ + i * w_.bias.strides[2] + j * w_.bias.strides[3]);
    return hidden(i, j) ? float(w_.fill) : score;
  }
  __device__ bool hidden(int i, int j) const {
    return w_.mask.array.data && !static_cast<const unsigned char *>(
                                     w_.mask.array.data)[mask_ + i * w_.mask.strides[2] + j * w_.mask.strides[3]];
  }
  __device__ bool drops() const { return w_.dropout > 0; }
  /// Dropout factors of keys j and j + 1. Requires: drops().
  __device__ float2 keepPair(int i, int j) const {
    const uint64_t element = start_ + (uint64_t)(i)*w_.keys + j;
    const unsigned at = element % 4;
    const PhiloxBlock block = draw_.block(element / 4);
    const uint32_t first = at == 0 ? block[0] : at == 1 ? block[1] : at == 2 ? block[2] : block[3];
    const uint32_t second = at == 0   ? block[1]
                            : at == 1 ? block[2]
                            : at == 2 ? block[3]
                                      : draw_.block(element / 4 + 1)[0];
    return {keep(first), keep(second)};
  }
  __device__ float keepOne(int i, int j) const { return float(draw_.factor(start_ + (uint64_t)(i)*w_.keys + j)); }

private:
  __device__ float keep(uint32_t number) const { return number >= draw_.threshold ? float(draw_.scale) : 0.0f; }

  const AttentionWork &w_;
  long long bias_, mask_;
  DropoutDraw draw_;
  uint64_t start_ = 0;
};

/// exp(score - lse), from lse as forward left it.
__device__ inline float probability(float score, float lse, int keys) {
  if (lse == -INFINITY)
    return 0;
  if (lse < -1e30f) // adding log(n) to the lowest float is lost: all scores are equal
    return 1.0f / keys;
  return __expf(score - lse);
}

/// f(an element, the head size as a type). Requires: servesMma.
template <typename F> cudaError_t withMma(const AttentionWork &w, F f) {
  auto withDepth = [&](auto type) {
    return w.depth == 64 ? f(type, std::integral_constant<int, 64>()) : f(type, std::integral_constant<int, 128>());
  };
  return w.type == kBF16 ? withDepth(__nv_bfloat16()) : withDepth(__half());
}

} // namespace shardc::cuda
