// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/ColumnSumsLaunch.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {
namespace {

constexpr int kDown = 32;

// A thread has every kDown-th row of a column.
template <typename C> __global__ void __launch_bounds__(kColumnSumTile *kDown) columnSums(const __grid_constant__ ColumnSumsArgs a) {
  awaitStream();
  __shared__ C room[kDown][kColumnSumTile];
  int which = 0;
  while (which + 1 < a.count && int(blockIdx.x) >= a.sums[which + 1].firstBlock)
    ++which;
  const ColumnSum &sum = a.sums[which];
  const long long column = (long long)(int(blockIdx.x) - sum.firstBlock) * kColumnSumTile + threadIdx.x;
  C total = 0;
  if (column < sum.columns) {
    const C *x = static_cast<const C *>(sum.x) + column;
#pragma unroll 8
    for (int r = threadIdx.y; r < sum.rows; r += kDown)
      total += x[(long long)r * sum.columns];
  }
  room[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= sum.columns)
    return;
  for (int d = 1; d < kDown; ++d)
    total += room[d][threadIdx.x];
  store(sum.y, column, total);
}

} // namespace

cudaError_t launchColumnSums(const ColumnSumsArgs &a, cudaStream_t stream) {
  const dim3 block(kColumnSumTile, kDown);
  return enqueue(a.isDouble ? columnSums<double> : columnSums<float>, a.blocks, block, 0, stream, a);
}

} // namespace shardc::cuda
