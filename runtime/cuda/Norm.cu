// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/NormLaunch.h"
#include "runtime/cuda/Rows.cuh"

namespace shardc::cuda {
namespace {

/// Threads of a row that is held in registers.
constexpr int kMost = 512;

template <typename C> SHARDC_DEVICE C rstdOf(C square, long long length, double eps) {
  return C(1) / sqrt(square / C(length) + C(eps));
}

template <int kWidth, typename C>
SHARDC_DEVICE void finish(const NormArgs &a, long long i, C mean, C rstd, C (&values)[kWidth]) {
  C scale[kWidth], bias[kWidth];
  if (a.scale.data)
    loadFloats<kWidth>(a.scale, i, scale);
  if (a.bias.data)
    loadFloats<kWidth>(a.bias, i, bias);
#pragma unroll
  for (int l = 0; l < kWidth; ++l) {
    values[l] = (values[l] - mean) * rstd;
    if (a.scale.data)
      values[l] *= scale[l];
    if (a.bias.data)
      values[l] += bias[l];
  }
}

template <typename C> SHARDC_DEVICE void writeStatistics(const NormArgs &a, long long row, C mean, C rstd) {
  if (threadIdx.x != 0)
    return;
  if (a.mean.data)
    store(a.mean, row, mean);
  store(a.rstd, row, rstd);
}

template <typename X, typename Y, int kWidth, int kPacks>
__global__ void __launch_bounds__(kMost) normHeld(NormArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const X *x = static_cast<const X *>(a.x) + a.xRows.offset(r);
    C held[kPacks][kWidth];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i < a.length)
        loadPack<kWidth>(x + i, held[p]);
    }
    C mean = 0, square = 0;
    if (a.mean.data) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        if ((p * blockDim.x + threadIdx.x) * kWidth < a.length)
#pragma unroll
          for (int l = 0; l < kWidth; ++l)
            mean += held[p][l];
      mean = joinRow(mean, Plus(), room) / C(a.length);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if ((p * blockDim.x + threadIdx.x) * kWidth < a.length)
#pragma unroll
        for (int l = 0; l < kWidth; ++l)
          square += (held[p][l] - mean) * (held[p][l] - mean);
    const C rstd = rstdOf(joinRow(square, Plus(), room), a.length, a.eps);
    writeStatistics(a, r, mean, rstd);
    Y *y = static_cast<Y *>(a.y) + r * a.length;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i < a.length) {
        finish<kWidth>(a, i, mean, rstd, held[p]);
        storePack<kWidth>(y + i, held[p]);
      }
    }
  }
}

// Rows of any length and place: read again for each pass.
template <typename X, typename Y> __global__ void normAny(NormArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const X *x = static_cast<const X *>(a.x) + a.xRows.offset(r);
    C mean = 0, square = 0;
    if (a.mean.data) {
#pragma unroll 4
      for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
        mean += widen(x[i]);
      mean = joinRow(mean, Plus(), room) / C(a.length);
    }
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x) {
      const C d = widen(x[i]) - mean;
      square += d * d;
    }
    const C rstd = rstdOf(joinRow(square, Plus(), room), a.length, a.eps);
    writeStatistics(a, r, mean, rstd);
    Y *y = static_cast<Y *>(a.y) + r * a.length;
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x) {
      C value[1] = {C(widen(x[i]))};
      finish<1>(a, i, mean, rstd, value);
      y[i] = narrow<Y>(value[0]);
    }
  }
}

template <typename X, typename Y> cudaError_t norm(const NormArgs &a, cudaStream_t stream) {
  constexpr int kWidth = kVector<X>, kHeld = sizeof(X) == 8 ? 16 : 32;
  const RowThreads held(a.length, kHeld, kMost);
  if (a.vectors && held.holds(a.length, kHeld))
    return enqueue(normHeld<X, Y, kWidth, kHeld / kWidth>, held.blocks(a.rows), held.block(), 0, stream, a);
  const RowThreads any(a.length, 8);
  return enqueue(normAny<X, Y>, any.blocks(a.rows), any.block(), 0, stream, a);
}

} // namespace

cudaError_t launchNorm(const NormArgs &a, cudaStream_t stream) {
  return withFloat(a.xType, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    if (a.xType == a.yType)
      return norm<T, T>(a, stream);
    if constexpr (sizeof(T) == 4) {
      return a.yType == ElementType::F16 ? norm<float, __half>(a, stream)
                                         : norm<float, __nv_bfloat16>(a, stream);
    } else if constexpr (sizeof(T) == 2) {
      return norm<T, float>(a, stream);
    }
    return cudaErrorInvalidValue;
  });
}

} // namespace shardc::cuda
