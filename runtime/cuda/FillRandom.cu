// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/FillRandom.h"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

/// Mixes the bits of an index (splitmix64).
__device__ inline unsigned long long mixed(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <typename T> __global__ void __launch_bounds__(kGridThreads) fill(T *data, long long count) {
  awaitStream();
  constexpr float kDeviation = 147.8f; // of a sum of four bytes
  for (long long i = firstOfGrid(); i < count; i += stepOfGrid()) {
    const unsigned bits = unsigned(mixed(i));
    const float sum = float((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510.f;
    data[i] = narrow<T>(Compute<T>(sum / kDeviation));
  }
}

cudaError_t fillRandom(void *data, ElementType type, long long count, cudaStream_t stream) {
  return withFloat(type, [&](auto *null) {
    using T = Pointee<decltype(null)>;
    return enqueue(fill<T>, dim3(gridFor(count)), kGridThreads, 0, stream, static_cast<T *>(data), count);
  });
}

} // namespace shardc::cuda
