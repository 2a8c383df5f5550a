// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Rows.cuh"
#include "runtime/cuda/SoftmaxLaunch.h"

namespace shardc::cuda {
namespace {

/// What a thread holds of a row: 32 floats, 8 doubles, so that the largest blocks have registers enough.
template <typename T> constexpr int kHold = sizeof(Compute<T>) == 8 ? 8 : 32;

template <int kCount> struct Count { static constexpr int kValue = kCount; };

template <typename C> SHARDC_DEVICE C infinity() { return C(__int_as_float(0x7f800000)); }
SHARDC_DEVICE float logOf(float x) { return logf(x); }
SHARDC_DEVICE double logOf(double x) { return log(x); }
SHARDC_DEVICE float expOf(float x) { return expf(x); }
SHARDC_DEVICE double expOf(double x) { return exp(x); }

template <typename X, typename Y, int kWidth, int kPacks>
__global__ void __launch_bounds__(1024) softmaxHeld(SoftmaxArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const X *x = static_cast<const X *>(a.x) + a.xRows.offset(r);
    Y *y = static_cast<Y *>(a.y) + r * a.length;
    C held[kPacks][kWidth];
    C top = -infinity<C>();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i < a.length)
        loadPack<kWidth>(x + i, held[p]);
      else
#pragma unroll
        for (int l = 0; l < kWidth; ++l)
          held[p][l] = -infinity<C>();
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int l = 0; l < kWidth; ++l)
        top = Larger()(top, held[p][l]);
    top = joinRow(top, Larger(), room);
    if (top == -infinity<C>()) // a row of -inf gives zeros, not NaN
      top = 0;
    C sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int l = 0; l < kWidth; ++l) {
        const C above = held[p][l] - top, e = expOf(above);
        sum += e;
        held[p][l] = a.log ? above : e;
      }
    sum = joinRow(sum, Plus(), room);
    const C log = a.log ? logOf(sum) : C(0), scale = sum == 0 ? C(0) : C(1) / sum;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
#pragma unroll
      for (int l = 0; l < kWidth; ++l)
        held[p][l] = a.log ? held[p][l] - log : held[p][l] * scale;
      if (i < a.length)
        storePack<kWidth>(y + i, held[p]);
    }
  }
}

// Rows of any length and place: read three times.
template <typename X, typename Y> __global__ void softmaxAny(SoftmaxArgs a) {
  awaitStream();
  using C = Compute<X>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const X *x = static_cast<const X *>(a.x) + a.xRows.offset(r);
    Y *y = static_cast<Y *>(a.y) + r * a.length;
    C top = -infinity<C>(), sum = 0;
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
      top = Larger()(top, C(widen(x[i])));
    top = joinRow(top, Larger(), room);
    if (top == -infinity<C>())
      top = 0;
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
      sum += expOf(C(widen(x[i])) - top);
    sum = joinRow(sum, Plus(), room);
    const C log = a.log ? logOf(sum) : C(0), scale = sum == 0 ? C(0) : C(1) / sum;
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x) {
      const C above = C(widen(x[i])) - top;
      y[i] = narrow<Y>(a.log ? above - log : expOf(above) * scale);
    }
  }
}

template <typename T, int kWidth, int kPacks>
__global__ void __launch_bounds__(1024) gradHeld(SoftmaxGradArgs a) {
  awaitStream();
  using C = Compute<T>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const T *dy = static_cast<const T *>(a.dy) + a.dyRows.offset(r),
            *y = static_cast<const T *>(a.y) + a.yRows.offset(r);
    T *dx = static_cast<T *>(a.dx) + r * a.length;
    C dys[kPacks][kWidth], ys[kPacks][kWidth], dot = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
      if (i < a.length) {
        loadPack<kWidth>(dy + i, dys[p]);
        loadPack<kWidth>(y + i, ys[p]);
      } else {
#pragma unroll
        for (int l = 0; l < kWidth; ++l)
          dys[p][l] = ys[p][l] = 0;
      }
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
#pragma unroll
      for (int l = 0; l < kWidth; ++l)
        dot += dys[p][l] * ys[p][l];
    dot = joinRow(dot, Plus(), room);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = (p * blockDim.x + threadIdx.x) * kWidth;
#pragma unroll
      for (int l = 0; l < kWidth; ++l)
        ys[p][l] *= dys[p][l] - dot;
      if (i < a.length)
        storePack<kWidth>(dx + i, ys[p]);
    }
  }
}

template <typename T> __global__ void gradAny(SoftmaxGradArgs a) {
  awaitStream();
  using C = Compute<T>;
  __shared__ C room[kMaxRowWarps];
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < a.rows;
       r += (long long)gridDim.x * blockDim.y) {
    const T *dy = static_cast<const T *>(a.dy) + a.dyRows.offset(r),
            *y = static_cast<const T *>(a.y) + a.yRows.offset(r);
    T *dx = static_cast<T *>(a.dx) + r * a.length;
    C dot = 0;
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
      dot += C(widen(dy[i])) * C(widen(y[i]));
    dot = joinRow(dot, Plus(), room);
#pragma unroll 4
    for (long long i = threadIdx.x; i < a.length; i += blockDim.x)
      dx[i] = narrow<T>(C(widen(y[i])) * (C(widen(dy[i])) - dot));
  }
}

/// Calls f with the smallest of 1, 2, 4 ... kMost packs, as an integral constant, that 32 threads hold a row
/// in; else with kMost.
template <int kMost, int kPacks = 1, typename F> cudaError_t withPacks(long long length, int width, F f) {
  if constexpr (kPacks >= kMost)
    return f(Count<kMost>());
  else if (32ll * kPacks * width >= length)
    return f(Count<kPacks>());
  else
    return withPacks<kMost, 2 * kPacks>(length, width, f);
}

template <typename X, typename Y> cudaError_t softmax(const SoftmaxArgs &a, cudaStream_t stream) {
  constexpr int kHeld = kHold<X>, kWidth = kVector<X>;
  const RowThreads held(a.length, kHeld);
  if (a.vectors && held.holds(a.length, kHeld)) {
    return withPacks<kHeld / kWidth>(a.length, kWidth, [&](auto packs) {
      return enqueue(softmaxHeld<X, Y, kWidth, decltype(packs)::kValue>, held.blocks(a.rows), held.block(), 0,
                     stream, a);
    });
  }
  const RowThreads any(a.length, 8);
  return enqueue(softmaxAny<X, Y>, any.blocks(a.rows), any.block(), 0, stream, a);
}

} // namespace

cudaError_t launchSoftmax(const SoftmaxArgs &a, cudaStream_t stream) {
  return withFloat(a.xType, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    if (a.xType == a.yType)
      return softmax<T, T>(a, stream);
    if constexpr (sizeof(T) == 4)
      return a.yType == ElementType::F16 ? softmax<float, __half>(a, stream)
                                         : softmax<float, __nv_bfloat16>(a, stream);
    return cudaErrorInvalidValue;
  });
}

cudaError_t launchSoftmaxGrad(const SoftmaxGradArgs &a, cudaStream_t stream) {
  return withFloat(a.type, [&](auto *t) {
    using T = Pointee<decltype(t)>;
    constexpr int kHeld = kHold<T> / 2, kWidth = kVector<T>;
    const RowThreads held(a.length, kHeld);
    if (a.vectors && held.holds(a.length, kHeld)) {
      return withPacks<kHeld / kWidth>(a.length, kWidth, [&](auto packs) {
        return enqueue(gradHeld<T, kWidth, decltype(packs)::kValue>, held.blocks(a.rows), held.block(), 0,
                       stream, a);
      });
    }
    const RowThreads any(a.length, 8);
    return enqueue(gradAny<T>, any.blocks(a.rows), any.block(), 0, stream, a);
  });
}

} // namespace shardc::cuda
