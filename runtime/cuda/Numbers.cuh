// SPDX-License-Identifier: Apache-2.0
// Numbers in device code: types of storage and types that are computed in, neighbours that are moved together, sums of
// warps and blocks in a fixed order.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Walk.h"
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace shardc::cuda {

/// What numbers stored as T are computed in: 16-bit floats in float, all others in their own type.
template <typename T> struct ComputeOf { using Type = T; };
template <> struct ComputeOf<__half> { using Type = float; };
template <> struct ComputeOf<__nv_bfloat16> { using Type = float; };
template <typename T> using Compute = typename ComputeOf<T>::Type;

template <typename T> SHARDC_DEVICE T widen(T x) { return x; }
SHARDC_DEVICE float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
SHARDC_DEVICE float widen(__half x) { return __half2float(x); }

/// To a stored type, to nearest even.
template <typename T> struct Narrow {
  template <typename C> static SHARDC_DEVICE T from(C x) { return T(x); }
};
template <> struct Narrow<__half> {
  static SHARDC_DEVICE __half from(float x) { return __float2half_rn(x); }
  static SHARDC_DEVICE __half from(double x) { return __double2half(x); }
};
template <> struct Narrow<__nv_bfloat16> {
  static SHARDC_DEVICE __nv_bfloat16 from(float x) { return __float2bfloat16_rn(x); }
  static SHARDC_DEVICE __nv_bfloat16 from(double x) { return __double2bfloat16(x); }
};
template <typename T, typename C> SHARDC_DEVICE T narrow(C x) { return Narrow<T>::from(x); }

/// Neighbours that are loaded and stored together, 16 bytes at once at most.
template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack { T at[N]; };
/// How many elements of T have 16 bytes.
template <typename T> constexpr int kVector = 16 / int(sizeof(T));
template <typename T> using Widest = Pack<T, kVector<T>>;

template <int N, typename T, typename C> SHARDC_DEVICE void loadPack(const T *from, C (&to)[N]) {
  Pack<T, N> pack = *reinterpret_cast<const Pack<T, N> *>(from);
#pragma unroll
  for (int l = 0; l < N; ++l)
    to[l] = C(widen(pack.at[l]));
}
template <int N, typename T, typename C> SHARDC_DEVICE void storePack(T *to, const C (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int l = 0; l < N; ++l)
    pack.at[l] = narrow<T>(from[l]);
  *reinterpret_cast<Pack<T, N> *>(to) = pack;
}

/// The same for arrays whose type is known when running only.
template <int N, typename C> SHARDC_DEVICE void loadFloats(const AnyFloats &a, long long i, C (&to)[N]) {
  switch (a.type) {
  case ElementType::F64:
    return loadPack<N>(static_cast<const double *>(a.data) + i, to);
  case ElementType::F16:
    return loadPack<N>(static_cast<const __half *>(a.data) + i, to);
  case ElementType::BF16:
    return loadPack<N>(static_cast<const __nv_bfloat16 *>(a.data) + i, to);
  default:
    return loadPack<N>(static_cast<const float *>(a.data) + i, to);
  }
}
template <typename C> SHARDC_DEVICE C load(const AnyFloats &a, long long i) {
  C one[1];
  loadFloats<1>(a, i, one);
  return one[0];
}
template <typename C> SHARDC_DEVICE void store(const AnyFloats &a, long long i, C x) {
  switch (a.type) {
  case ElementType::F64:
    static_cast<double *>(a.data)[i] = double(x);
    break;
  case ElementType::F16:
    static_cast<__half *>(a.data)[i] = narrow<__half>(x);
    break;
  case ElementType::BF16:
    static_cast<__nv_bfloat16 *>(a.data)[i] = narrow<__nv_bfloat16>(x);
    break;
  default:
    static_cast<float *>(a.data)[i] = float(x);
  }
}

/// Element i of an operand of i32 or i64.
SHARDC_DEVICE long long loadIndex(const void *from, ElementType type, long long i) {
  return type == ElementType::I32 ? static_cast<const int *>(from)[i] : static_cast<const long long *>(from)[i];
}

constexpr int kWarp = 32;

/// The same tree for each number of lanes. All lanes of the warp must call; all get the result.
template <typename C, typename Join> SHARDC_DEVICE C warpJoin(C x, Join join) {
  for (int step = kWarp / 2; step; step /= 2)
    x = join(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// The same for a block of whole warps, at most 32. Not twice without a barrier between: `room` holds one C a warp.
template <typename C, typename Join> SHARDC_DEVICE C blockJoin(C x, C *room, Join join) {
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
  template <typename C> SHARDC_DEVICE C operator()(C a, C b) const { return a + b; }
};

} // namespace shardc::cuda
