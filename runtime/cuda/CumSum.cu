// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Numbers.cuh"
#include "runtime/cuda/ScatterLaunch.h"

namespace shardc::cuda {
namespace {

/// What sums are kept in: unsigned integers wrap around.
template <typename T> struct SumOf { using Type = Compute<T>; };
template <> struct SumOf<int> { using Type = unsigned; };
template <> struct SumOf<long long> { using Type = unsigned long long; };
template <> struct SumOf<unsigned char> { using Type = unsigned; };

constexpr int kWarps = 4;

// A warp has a line.
template <typename T> __global__ void cumSum(CumSumArgs a) {
  awaitStream();
  using S = typename SumOf<T>::Type;
  const int lane = threadIdx.x;
  for (long long line = (long long)blockIdx.x * kWarps + threadIdx.y; line < a.lines;
       line += (long long)gridDim.x * kWarps) {
    const long long start = line / a.inner * a.size * a.inner + line % a.inner;
    S carry = 0;
    for (long long base = 0; base < a.size; base += 32) {
      const long long i = base + lane, at = start + (a.reverse ? a.size - 1 - i : i) * a.inner;
      S sum = i < a.size ? S(widen(static_cast<const T *>(a.x)[at])) : S(0);
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        S before = __shfl_up_sync(0xffffffffu, sum, o);
        if (lane >= o)
          sum += before;
      }
      S before = __shfl_up_sync(0xffffffffu, sum, 1);
      if (i < a.size)
        static_cast<T *>(a.y)[at] =
            narrow<T>(Compute<T>(carry + (a.exclusive ? (lane ? before : S(0)) : sum)));
      carry += __shfl_sync(0xffffffffu, sum, 31);
    }
  }
}

} // namespace

cudaError_t launchCumSum(const CumSumArgs &a, cudaStream_t stream) {
  return withStored(a.type, [&](auto *t) {
    return enqueue(cumSum<Pointee<decltype(t)>>, gridFor(a.lines, kWarps), dim3(32, kWarps), 0, stream, a);
  });
}

} // namespace shardc::cuda
