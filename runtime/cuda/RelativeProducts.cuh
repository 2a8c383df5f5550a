// SPDX-License-Identifier: Apache-2.0
// Tiles of 16-bit heads in shared memory: sizes, copies and products by the tensor cores, for the kernels of
// relative_attention.
#pragma once

#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/RelativeAttention.h"

namespace shardc::cuda::relative {

constexpr int kThreads = 512, kSide = 128, kDistances = 256, kDepth = 64, kRowPitch = kPitch<kDepth>;
constexpr int kTileSize = kSide * kRowPitch, kDistancesSize = kDistances * kRowPitch;
/// Bands of scores in 16 bits: 16 rows that meet 64 others, one band a warp.
constexpr int kBandPitch = 88, kBandSize = 16 * kBandPitch, kBandsSize = kThreads / kWarp * kBandSize;
/// Tiles of 16-bit scores, and their bands: 128 rows that meet 128 others.
constexpr int kScorePitch = kSide + 8, kWideBand = 144, kWideBandPitch = kWideBand + 8;
constexpr int kScoresSize = kSide * kScorePitch, kWideBandSize = kSide * kWideBandPitch;

/// The global row of local row 0 of the tile of queries from i0 and keys from j0 on.
__host__ __device__ inline int firstDistance(int i0, int j0, int keys) { return i0 - j0 - (kSide - 1) + keys - 1; }

/// A place in the block's shared memory of 16-bit elements, as pointer and as address: addresses take half the
/// instructions.
template <typename T> struct Place {
  T *data;
  uint32_t address;
  static __device__ Place first() {
    T *data = dynamicShared<T>();
    return {data, uint32_t(__cvta_generic_to_shared(data))};
  }
  __device__ Place operator+(int elements) const { return {data + elements, address + elements * 2}; }
};

__device__ inline void copyTo(uint32_t to, const void *from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}
__device__ inline void loadMatricesAt(uint32_t (&r)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ inline void loadTransposedAt(uint32_t (&r)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

/// to[kRows][kToPitch] = rows `first` and on of 8 kEach elements, zeros outside [low, high): begun.
template <typename T, int kRows, int kEach, int kToPitch>
__device__ inline void copyBlock(Place<T> to, const T *from, long long pitch, int first, int low, int high) {
  constexpr int kStep = kThreads / kEach;
  const int r = threadIdx.x / kEach, c = threadIdx.x % kEach * 8;
  const T *row = from + (first + r) * pitch + c;
  const uint32_t at = to.address + (r * kToPitch + c) * 2;
#pragma unroll
  for (int e = 0; e < kRows / kStep; ++e) {
    const int i = first + r + e * kStep;
    const bool real = i >= low && i < high;
    copyTo(at + e * kStep * kToPitch * 2, real ? row : from, real);
    row += kStep * pitch;
  }
}
template <typename T>
__device__ inline void copyDistances(Place<T> to, const PositionsView &from, int h, int first, int rows) {
  copyBlock<T, kDistances, 8, kRowPitch>(to, static_cast<const T *>(from.data) + h * from.head, from.row, first, 0, rows);
}
template <typename T>
__device__ inline void copyTile(Place<T> to, const HeadsView &from, int b, int h, int first, int end) {
  const T *head = static_cast<const T *>(from.data) + b * from.batch + h * from.head;
  copyBlock<T, kSide, 8, kRowPitch>(to, head, from.row, first, 0, end);
}

/// x += a b^T for the 16 rows at `a` and 8 N rows at `b`, of kDepth elements.
template <typename T, int N> __device__ inline void multiplyHeads(float (&x)[N][4], Place<T> a, Place<T> b) {
  const int lane = threadIdx.x % kWarp;
  const uint32_t rowA = (a + (lane % 16 * kRowPitch + lane / 16 * 8)).address;
  const uint32_t rowB = (b + ((lane % 8 + lane / 16 * 8) * kRowPitch + lane / 8 % 2 * 8)).address;
#pragma unroll
  for (int d = 0; d < kDepth; d += 16) {
    uint32_t left[4], right[4];
    loadMatricesAt(left, rowA + d * 2);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadMatricesAt(right, rowB + (n * 8 * kRowPitch + d) * 2);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

/// x += round(p) b for the 64 rows at `b`.
template <typename T> __device__ inline void multiplyRounded(float (&x)[8][4], const float (&p)[8][4], Place<T> b) {
  const int lane = threadIdx.x % kWarp;
  const uint32_t rowB = (b + (lane % 16 * kRowPitch + lane / 16 * 8)).address;
#pragma unroll
  for (int n = 0; n < 8; n += 2) {
    const uint32_t left[4] = {packPair(p[n][0], p[n][1], T()), packPair(p[n][2], p[n][3], T()),
                              packPair(p[n + 1][0], p[n + 1][1], T()), packPair(p[n + 1][2], p[n + 1][3], T())};
#pragma unroll
    for (int d = 0; d < 8; d += 2) {
      uint32_t right[4];
      loadTransposedAt(right, rowB + (n * 8 * kRowPitch + d * 8) * 2);
      multiplyAdd(x[d], left, right[0], right[1], T());
      multiplyAdd(x[d + 1], left, right[2], right[3], T());
    }
  }
}

/// x[16, 8 N] += a b for 16 rows of 16-bit `a`, kLength long, and as many rows at `b`.
template <typename T, int kPitchA, int kLength, int N>
__device__ inline void multiplyPlain(float (&x)[N][4], Place<T> a, Place<T> b) {
  const int lane = threadIdx.x % kWarp;
  const uint32_t rowA = (a + (lane % 16 * kPitchA + lane / 16 * 8)).address;
  const uint32_t rowB = (b + (lane % 16 * kRowPitch + lane / 16 * 8)).address;
#pragma unroll
  for (int d = 0; d < kLength; d += 16) {
    uint32_t left[4], right[4];
    loadMatricesAt(left, rowA + d * 2);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadTransposedAt(right, rowB + (d * kRowPitch + n * 8) * 2);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

/// x[16, 8 N] += a^T b for 16 columns of `a`, kRows of them, and as many rows at `b`.
template <typename T, int kPitchA, int kRows, int N>
__device__ inline void multiplyTurned(float (&x)[N][4], Place<T> a, Place<T> b) {
  const int lane = threadIdx.x % kWarp;
  const uint32_t rowA = (a + ((lane % 8 + lane / 16 * 8) * kPitchA + lane / 8 % 2 * 8)).address;
  const uint32_t rowB = (b + (lane % 16 * kRowPitch + lane / 16 * 8)).address;
#pragma unroll
  for (int r = 0; r < kRows; r += 16) {
    uint32_t left[4], right[4];
    loadTransposedAt(left, rowA + r * kPitchA * 2);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadTransposedAt(right, rowB + (r * kRowPitch + n * 8) * 2);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

} // namespace shardc::cuda::relative
