// SPDX-License-Identifier: Apache-2.0
// Rows of threads that work on one row of numbers: blockDim.x threads, a power of two of at least 32;
// blockDim.y such rows in a block, more than one only where blockDim.x is 32.
#pragma once

#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

constexpr int kMaxRowWarps = 32;

struct Larger {
  template <typename A> SHARDC_DEVICE A operator()(A a, A b) const { return a > b || a != a ? a : b; }
};

/// All values of the row joined, in every thread of it, in an order that the shape alone decides. `shared`
/// has kMaxRowWarps places; all threads of the block call it together.
template <typename A, typename Join> SHARDC_DEVICE A joinRow(A value, Join join, A *shared) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, o));
  if (blockDim.x == 32)
    return value;
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  __syncthreads(); // the last join has read
  if (lane == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[lane & (warps - 1)];
  for (int o = warps / 2; o > 0; o /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, o));
  return value;
}

/// How rows of `length` are spread over threads that hold at most `held` elements each.
struct RowThreads {
  int threads, rows;
  RowThreads(long long length, int held, int most = 1024) : threads(32), rows(1) {
    while (threads < most && (long long)threads * held < length)
      threads *= 2;
    if (threads == 32)
      rows = 4;
  }
  bool holds(long long length, int held) const { return (long long)threads * held >= length; }
  dim3 block() const { return dim3(threads, rows); }
  /// Blocks for `count` rows, at most what a grid can have: kernels go on in steps of the grid.
  unsigned blocks(long long count) const {
    long long blocks = (count + rows - 1) / rows;
    return unsigned(blocks < 0x7fffffffll ? blocks : 0x7fffffffll);
  }
};

} // namespace shardc::cuda
