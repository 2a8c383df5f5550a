// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Grid.cuh"
#include "runtime/cuda/Numbers.cuh"
#include "runtime/cuda/Round.h"

namespace shardc::cuda {
namespace {

constexpr int kEach = 8; ///< numbers at once: 16 bytes of results

template <typename T> __global__ void roundPacks(const float *from, T *to, long long packs) {
  awaitStream();
  using Half = Pack<float, kEach / 2>;
  for (long long i = firstOfGrid(); i < packs; i += stepOfGrid()) {
    const Half *read = reinterpret_cast<const Half *>(from + i * kEach);
    const Half low = read[0], high = read[1];
    Pack<T, kEach> made;
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      made.at[j] = narrow<T>(j < kEach / 2 ? low.at[j % (kEach / 2)] : high.at[j % (kEach / 2)]);
    *reinterpret_cast<Pack<T, kEach> *>(to + i * kEach) = made;
  }
}

template <typename T> __global__ void roundEach(const float *from, T *to, long long count) {
  awaitStream();
  for (long long i = firstOfGrid(); i < count; i += stepOfGrid())
    to[i] = narrow<T>(from[i]);
}

/// Packs where both sides allow them, then the rest.
template <typename T> cudaError_t round(const Round &a, cudaStream_t stream) {
  T *to = static_cast<T *>(a.to.data);
  const bool wide = (reinterpret_cast<unsigned long long>(a.from) | reinterpret_cast<unsigned long long>(to)) % 16 == 0;
  const long long packs = wide ? a.count / kEach : 0, rest = a.count - packs * kEach;
  cudaError_t code = cudaSuccess;
  if (packs)
    code = enqueue(roundPacks<T>, gridFor(packs), kGridThreads, 0, stream, a.from, to, packs);
  if (rest && code == cudaSuccess)
    code = enqueue(roundEach<T>, gridFor(rest), kGridThreads, 0, stream, a.from + packs * kEach,
                   to + packs * kEach, rest);
  return code;
}

} // namespace

cudaError_t launchRound(const Round &a, cudaStream_t stream) {
  if (a.count == 0)
    return cudaSuccess;
  if (a.to.type == ElementType::F16)
    return round<__half>(a, stream);
  return a.to.type == ElementType::BF16 ? round<__nv_bfloat16>(a, stream) : cudaErrorInvalidValue;
}

} // namespace shardc::cuda
