// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/GatherLaunch.h"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Index.cuh"

namespace shardc::cuda {
namespace {

__global__ void emptyTable(IndexOperand indices) {
  awaitStream();
  wrapped(indices, 0, 0);
}

template <typename T> __global__ void gather(GatherRows a) {
  awaitStream();
  const T *data = static_cast<const T *>(a.data);
  for (long long p = firstOfGrid(); p < a.total; p += stepOfGrid()) {
    const long long row = a.perRow.quotient(p), piece = p - row * a.perRow.divisor;
    const long long outer = a.perOuter.quotient(row), i = row - outer * a.count;
    const long long index = wrapped(a.indices, i, a.size);
    static_cast<T *>(a.y)[p] = data[(outer * a.size + index) * a.perRow.divisor + piece];
  }
}

template <typename T> __global__ void gatherNd(GatherNdArgs a) {
  awaitStream();
  const T *data = static_cast<const T *>(a.data);
  for (long long p = firstOfGrid(); p < a.total; p += stepOfGrid()) {
    const long long tuple = a.line.quotient(p), piece = p - tuple * a.line.divisor;
    long long slice = 0;
    for (int k = 0; k < a.width; ++k)
      slice = slice * a.dims[k] + wrapped(a.indices, tuple * a.width + k, a.dims[k]);
    static_cast<T *>(a.y)[p] = data[a.perBatch.quotient(tuple) * a.batch + slice * a.line.divisor + piece];
  }
}

constexpr int kGradThreads = 128, kGradColumns = 4;

// A block has one row of the result and some of its columns, and looks for its number among all indices.
template <typename T> __global__ void gatherGrad(GatherGradRows a) {
  awaitStream();
  __shared__ unsigned found[kGradThreads / 32];
  const long long outer = blockIdx.x / a.size, row = blockIdx.x % a.size;
  const long long first = (long long)blockIdx.y * kGradThreads * kGradColumns + threadIdx.x;
  const T *dy = static_cast<const T *>(a.dy) + outer * a.count * a.inner;
  Compute<T> sums[kGradColumns] = {};
  for (long long base = 0; base < a.count; base += kGradThreads) {
    const long long i = base + threadIdx.x;
    bool mine = false;
    if (i < a.count) {
      long long index = loadIndex(a.indices.data, a.indices.type, i);
      if (blockIdx.x == 0 && blockIdx.y == 0)
        wrappedIndex(a.indices.fault, a.indices.site, index, a.size);
      mine = (index < 0 ? index + a.size : index) == row;
    }
    if (!__syncthreads_or(mine))
      continue;
    unsigned votes = __ballot_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
      found[threadIdx.x / 32] = votes;
    __syncthreads();
    for (int warp = 0; warp < kGradThreads / 32; ++warp)
      for (unsigned left = found[warp]; left; left &= left - 1) {
        const T *from = dy + (base + warp * 32 + __ffs(left) - 1) * a.inner;
#pragma unroll
        for (int k = 0; k < kGradColumns; ++k)
          if (first + k * kGradThreads < a.inner)
            sums[k] += widen(from[first + k * kGradThreads]);
      }
    __syncthreads();
  }
  T *dx = static_cast<T *>(a.dx) + (outer * a.size + row) * a.inner;
#pragma unroll
  for (int k = 0; k < kGradColumns; ++k)
    if (first + k * kGradThreads < a.inner)
      dx[first + k * kGradThreads] = narrow<T>(sums[k]);
}

} // namespace

cudaError_t launchEmptyTable(const IndexOperand &a, cudaStream_t stream) {
  return enqueue(emptyTable, dim3(1), 1, 0, stream, a);
}

cudaError_t launchGather(const GatherRows &a, cudaStream_t stream) {
  return withBytes(a.bytes, [&](auto *t) {
    return enqueue(gather<Pointee<decltype(t)>>, gridFor(a.total), kGridThreads, 0, stream, a);
  });
}

cudaError_t launchGatherNd(const GatherNdArgs &a, cudaStream_t stream) {
  return withBytes(a.bytes, [&](auto *t) {
    return enqueue(gatherNd<Pointee<decltype(t)>>, gridFor(a.total), kGridThreads, 0, stream, a);
  });
}

cudaError_t launchGatherGrad(const GatherGradRows &a, cudaStream_t stream) {
  const long long columns = kGradThreads * kGradColumns;
  const dim3 grid(unsigned(a.outer * a.size), unsigned((a.inner + columns - 1) / columns));
  return withFloat(a.type, [&](auto *t) {
    return enqueue(gatherGrad<Pointee<decltype(t)>>, grid, kGradThreads, 0, stream, a);
  });
}

} // namespace shardc::cuda
