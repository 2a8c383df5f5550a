// SPDX-License-Identifier: Apache-2.0
// Numbers in device code: storage types and the types that are computed in, sums of warps and blocks in a fixed order.
#pragma once

#include "runtime/cuda/Element.h"
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace shardc::cuda {

/// What numbers stored as T are computed in: float, but double for double.
template <typename T> struct ComputeOf { using type = float; };
template <> struct ComputeOf<double> { using type = double; };
template <typename T> using Compute = typename ComputeOf<T>::type;

__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float widen(__half x) { return __half2float(x); }

/// To nearest even.
template <typename T, typename C> __device__ inline T narrow(C x) { return T(x); }
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16, float>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16, double>(double x) { return __double2bfloat16(x); }
template <> __device__ inline __half narrow<__half, float>(float x) { return __float2half_rn(x); }
template <> __device__ inline __half narrow<__half, double>(double x) { return __double2half(x); }

template <typename C> __device__ inline C load(const AnyFloats &a, int64_t i) {
  switch (a.type) {
  case kF64:
    return C(static_cast<const double *>(a.data)[i]);
  case kF16:
    return C(__half2float(static_cast<const __half *>(a.data)[i]));
  case kBF16:
    return C(__bfloat162float(static_cast<const __nv_bfloat16 *>(a.data)[i]));
  default:
    return C(static_cast<const float *>(a.data)[i]);
  }
}

template <typename C> __device__ inline void store(const AnyFloats &a, int64_t i, C x) {
  switch (a.type) {
  case kF64:
    static_cast<double *>(a.data)[i] = double(x);
    break;
  case kF16:
    static_cast<__half *>(a.data)[i] = narrow<__half>(x);
    break;
  case kBF16:
    static_cast<__nv_bfloat16 *>(a.data)[i] = narrow<__nv_bfloat16>(x);
    break;
  default:
    static_cast<float *>(a.data)[i] = float(x);
  }
}

/// N elements that are loaded at once. Requires: aligned to their bytes.
template <typename T, int N> struct alignas(N * sizeof(T)) Pack { T at[N]; };
/// As many as 16 bytes hold.
template <typename T> using Widest = Pack<T, 16 / sizeof(T)>;

constexpr int kWarp = 32;

/// The same tree for each number of lanes. All lanes of the warp must call; all get the result.
template <typename C, typename Join> __device__ inline C warpJoin(C x, Join join) {
  for (int step = kWarp / 2; step; step /= 2)
    x = join(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// The same for a block of whole warps, at most 32. Not twice without a barrier between: `room` holds one C a warp.
template <typename C, typename Join> __device__ inline C blockJoin(C x, C *room, Join join) {
  x = warpJoin(x, join);
  const int warps = blockDim.x / kWarp;
  if (threadIdx.x % kWarp == 0)
    room[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = room[0];
  for (int w = 1; w < warps; ++w)
    x = join(x, room[w]);
  return x;
}

struct Plus {
  template <typename C> __device__ C operator()(C a, C b) const { return a + b; }
};

} // namespace shardc::cuda
