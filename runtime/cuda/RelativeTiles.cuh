// SPDX-License-Identifier: Apache-2.0
// Tiles of 16-bit heads in shared memory for the kernels of relative_attention, as Wgmma.cuh wants them: sizes,
// copies, and small matrices of them.
#pragma once

#include "runtime/cuda/AttentionWgmma.cuh"
#include "runtime/cuda/RelativeAttention.h"

namespace shardc::cuda::relative {

constexpr int kThreads = 4 * kWarpgroup, kSide = kWgRows, kDistances = 2 * kSide, kDepth = 64;
constexpr int kDistancesTile = kDistances * kDepth * 2; ///< bytes
constexpr int kHalfTile = kWgTile / 2;                  ///< bytes of 64 rows

/// The global row of local row 0 of the tile of queries from i0 and keys from j0 on.
__host__ __device__ inline int firstDistance(int i0, int j0, int keys) { return i0 - j0 - (kSide - 1) + keys - 1; }

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

/// The addresses of 16 bytes `chunk` (0 or 1) of a row and of those 2, 4 and 6 further on.
struct RowAddress {
  uint32_t at[4];
  __device__ RowAddress(const char *tile, int row, int chunk) {
#pragma unroll
    for (int d = 0; d < 4; ++d)
      at[d] = sharedAddress(tile + tileAt(row, chunk)) ^ d * 32;
  }
};

/// A row with its bits 0 and 3 swapped.
__device__ inline int swappedRow(int r) { return (r & ~9) | (r & 1) << 3 | (r >> 3 & 1); }

/// The block copies rows first, first + step, ... of 8 kEach elements, zeros outside [0, end) and where not
/// `inside`: begun. Each 64 elements are a tile. kSwaps: rows lie at their swappedRow.
template <int kRows, int kEach, bool kSwaps = false, typename T>
__device__ inline void copySwizzled(char *to, const T *from, long long pitch, int first, int step, int end,
                                    bool inside = true) {
  constexpr int kStep = kThreads / kEach;
  static_assert(kStep % 16 == 0);
  const int r = threadIdx.x / kEach, c = threadIdx.x % kEach;
  char *at = to + c / 8 * kWgTile + tileAt(kSwaps ? swappedRow(r) : r, c % 8);
#pragma unroll
  for (int e = 0; e < kRows / kStep; ++e) {
    const int row = first + (r + e * kStep) * step;
    const bool real = inside && row >= 0 && row < end;
    copyAsync(at + e * kStep * 128, from + (real ? row * pitch + c * 8 : 0), real);
  }
}
template <bool kSwaps = false, typename T>
__device__ inline void copyTile(char *to, const HeadsView &from, int b, int h, int first, int end, T) {
  copySwizzled<kSide, 8, kSwaps>(to, headRow<T>(from, b, h, 0), from.row, first, 1, end);
}
/// The distances that a tile meets, from local row 0 on, if the positions are there.
template <typename T>
__device__ inline void copyDistances(char *to, const PositionsView &from, int h, int first, int rows, T) {
  if (from.data)
    copySwizzled<kDistances, 8>(to, static_cast<const T *>(from.data) + h * from.head, from.row, first, 1, rows);
}
/// From local row kDistances - 2, the last, on.
template <typename T>
__device__ inline void copyDistancesBack(char *to, const PositionsView &from, int h, int first, int rows, T) {
  if (from.data)
    copySwizzled<kDistances, 8>(to, static_cast<const T *>(from.data) + h * from.head, from.row,
                                first + kDistances - 2, -1, rows);
}

} // namespace shardc::cuda::relative
