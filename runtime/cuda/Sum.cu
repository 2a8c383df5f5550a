// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Sum.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shardc::cuda {
namespace {

template <typename T> struct Wide { using Type = T; };
template <> struct Wide<__half> { using Type = float; };
template <> struct Wide<__nv_bfloat16> { using Type = float; };

template <typename T>
__global__ void sumRanks(SumArrays arrays, long long begin, long long resultBegin, long long n) {
  awaitStream();
  using Sum = typename Wide<T>::Type;
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    Sum sum = Sum(static_cast<const T *>(arrays.parts[0])[begin + i]);
    for (unsigned r = 1; r < arrays.ranks; ++r)
      sum = Sum(sum + Sum(static_cast<const T *>(arrays.parts[r])[begin + i]));
    for (unsigned k = 0; k < arrays.numResults; ++k)
      static_cast<T *>(arrays.results[k])[resultBegin + i] = T(sum);
  }
}

template <typename T>
cudaError_t launch(const SumArrays &arrays, long long begin, long long resultBegin, long long n, cudaStream_t stream) {
  constexpr int kThreads = 256;
  constexpr long long kMostBlocks = 2048;
  long long blocks = (n + kThreads - 1) / kThreads;
  return enqueue(sumRanks<T>, unsigned(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream,
                 arrays, begin, resultBegin, n);
}

} // namespace

cudaError_t launchSum(SumType type, const SumArrays &arrays, long long begin, long long resultBegin, long long n,
                      cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  switch (type) {
  case SumType::F32:
    return launch<float>(arrays, begin, resultBegin, n, stream);
  case SumType::F64:
    return launch<double>(arrays, begin, resultBegin, n, stream);
  case SumType::F16:
    return launch<__half>(arrays, begin, resultBegin, n, stream);
  case SumType::BF16:
    return launch<__nv_bfloat16>(arrays, begin, resultBegin, n, stream);
  case SumType::U8:
    return launch<unsigned char>(arrays, begin, resultBegin, n, stream);
  case SumType::U32:
    return launch<unsigned>(arrays, begin, resultBegin, n, stream);
  case SumType::U64:
    return launch<unsigned long long>(arrays, begin, resultBegin, n, stream);
  }
  return cudaErrorInvalidValue;
}

} // namespace shardc::cuda
