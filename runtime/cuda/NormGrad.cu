// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/NormLaunch.h"
#include "runtime/cuda/NormTypes.cuh"
#include "runtime/cuda/Rows.cuh"

namespace shardc::cuda {
namespace {

/// Threads of a row that is held in registers, and what each holds: x and dy.
constexpr int kMost = 512, kHeld = 16;

template <typename DY, typename X, int kWidth, int kPacks>
__global__ void __launch_bounds__(kMost) gradHeld(NormGradArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const DY *dy = static_cast<const DY *>(a.dy) + r * a.length;
    const X *x = static_cast<const X *>(a.x) + r * a.length;
    const C mean = a.mean.data ? load<C>(a.mean, r) : C(0),
            rstd = load<C>(a.rstd, r);
    C dh[kPacks][kWidth], h[kPacks][kWidth], sum = 0, dot = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i < a.length) {
        loadPack<kWidth>(x + i, h[p]);
        loadPack<kWidth>(dy + i, dh[p]);
      }
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i >= a.length)
        continue;
      C scale[kWidth];
      if (a.scale.data)
        loadFloats<kWidth>(a.scale, i, scale);
#pragma unroll
      for (int l = 0; l < kWidth; ++l) {
        h[p][l] = (h[p][l] - mean) * rstd;
        if (a.scale.data)
          dh[p][l] *= scale[l];
        sum += dh[p][l];
        dot += dh[p][l] * h[p][l];
      }
    }
    if (a.mean.data)
      sum = joinRow(sum, Plus(), room) / C(a.length);
    else
      sum = 0;
    dot = joinRow(dot, Plus(), room) / C(a.length);
    DY *dx = static_cast<DY *>(a.dx) + r * a.length;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
#pragma unroll
      for (int l = 0; l < kWidth; ++l)
        dh[p][l] = rstd * (dh[p][l] - sum - h[p][l] * dot);
      if (i < a.length)
        storePack<kWidth>(dx + i, dh[p]);
    }
  }
}

template <typename DY, typename X> __global__ void gradAny(NormGradArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const DY *dy = static_cast<const DY *>(a.dy) + r * a.length;
    const X *x = static_cast<const X *>(a.x) + r * a.length;
    DY *dx = static_cast<DY *>(a.dx) + r * a.length;
    const C mean = a.mean.data ? load<C>(a.mean, r) : C(0),
            rstd = load<C>(a.rstd, r);
    auto dhOf = [&](long long i) {
      C dh = widen(dy[i]);
      return a.scale.data ? dh * load<C>(a.scale, i) : dh;
    };
    C sum = 0, dot = 0;
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x) {
      const C dh = dhOf(i);
      sum += dh;
      dot += dh * ((C(widen(x[i])) - mean) * rstd);
    }
    if (a.mean.data)
      sum = joinRow(sum, Plus(), room) / C(a.length);
    else
      sum = 0;
    dot = joinRow(dot, Plus(), room) / C(a.length);
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
      dx[i] = narrow<DY>(rstd * (dhOf(i) - sum - (C(widen(x[i])) - mean) * rstd * dot));
  }
}

template <typename DY, typename X> cudaError_t grad(const NormGradArgs &a, cudaStream_t stream) {
  // As wide as the narrower type's 16 bytes.
  constexpr int kWidth = kVector < DY >> kVector<X> ? kVector<DY> : kVector<X>;
  const RowThreads held(a.length, kHeld, kMost);
  if (a.vectors && held.holds(a.length, kHeld))
    return enqueue(gradHeld<DY, X, kWidth, kHeld / kWidth>, held.blocks(a.rows), held.block(), 0, stream, a);
  const RowThreads any(a.length, 8);
  return enqueue(gradAny<DY, X>, any.blocks(a.rows), any.block(), 0, stream, a);
}

} // namespace

cudaError_t launchNormGrad(const NormGradArgs &a, cudaStream_t stream) {
  return withNormTypes(
      a, [&](auto *dy, auto *x) { return grad<Pointee<decltype(dy)>, Pointee<decltype(x)>>(a, stream); });
}

} // namespace shardc::cuda
