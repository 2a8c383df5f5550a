// SPDX-License-Identifier: Apache-2.0
// What the gradient of relative_attention wants of rows of `out`.
#pragma once

#include "runtime/cuda/RelativeTiles.cuh"

namespace shardc::cuda::relative {

/// The lane's 16 elements of `out` of two queries.
template <typename T> struct RowParts {
  Widest<T> at[2][2];
  __device__ RowParts(const HeadsView &out, int b, int h, const int (&rows)[2]) {
#pragma unroll
    for (int side = 0; side < 2; ++side)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        at[side][c] = *reinterpret_cast<const Widest<T> *>(headRow<T>(out, b, h, rows[side]) +
                                                           threadIdx.x % 4 * 16 + c * 8);
  }
  /// The sums of dout out, of which `dout` has the tile and `row` is the lane's first.
  __device__ void deltas(float (&to)[2], const char *dout, int row) const {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float sum = 0;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Widest<T> others =
            *reinterpret_cast<const Widest<T> *>(dout + tileAt(row + 8 * side, threadIdx.x % 4 * 2 + c));
#pragma unroll
        for (int l = 0; l < 8; ++l)
          sum += widen(at[side][c].at[l]) * widen(others.at[l]);
      }
      to[side] = quadJoin(sum, Plus());
    }
  }
};

} // namespace shardc::cuda::relative
