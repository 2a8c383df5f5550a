// SPDX-License-Identifier: Apache-2.0
// Numbers as they are stored and as they are computed: 16-bit floats in float, all others in their own type.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Walk.h"

namespace shardc::cuda::stored {

struct Half {
  unsigned short bits;
};
struct BFloat {
  unsigned short bits;
};

template <typename T> struct ComputeOf { using Type = T; };
template <> struct ComputeOf<Half> { using Type = float; };
template <> struct ComputeOf<BFloat> { using Type = float; };
template <typename T> using Compute = typename ComputeOf<T>::Type;

template <typename T> SHARDC_DEVICE T widen(T value) { return value; }
SHARDC_DEVICE float widen(BFloat value) { return __uint_as_float(unsigned(value.bits) << 16); }
SHARDC_DEVICE float widen(Half value) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(value.bits));
  return f;
}

/// To a stored type, rounding to nearest even.
template <typename T> struct Narrow {
  template <typename C> static SHARDC_DEVICE T from(C value) { return T(value); }
};
template <> struct Narrow<Half> {
  static SHARDC_DEVICE Half from(float value) {
    Half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(value));
    return h;
  }
};
template <> struct Narrow<BFloat> {
  static SHARDC_DEVICE BFloat from(float value) {
    BFloat b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(value));
    return b;
  }
};
template <typename T, typename C> SHARDC_DEVICE T narrow(C value) { return Narrow<T>::from(value); }

/// Neighbours that are loaded and stored together, 16 bytes at once at most.
template <typename T, int kCount> struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Pack {
  T at[kCount];
};
/// How many elements of T have 16 bytes.
template <typename T> constexpr int kVector = 16 / int(sizeof(T));

template <int kCount, typename T, typename C> SHARDC_DEVICE void loadPack(const T *from, C (&to)[kCount]) {
  Pack<T, kCount> pack = *reinterpret_cast<const Pack<T, kCount> *>(from);
#pragma unroll
  for (int l = 0; l < kCount; ++l)
    to[l] = C(widen(pack.at[l]));
}
template <int kCount, typename T, typename C> SHARDC_DEVICE void storePack(T *to, const C (&from)[kCount]) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int l = 0; l < kCount; ++l)
    pack.at[l] = narrow<T>(from[l]);
  *reinterpret_cast<Pack<T, kCount> *>(to) = pack;
}

/// The same for a float array whose type is known when running only.
template <int kCount, typename C>
SHARDC_DEVICE void loadFloats(const void *from, ElementType type, long long index, C (&to)[kCount]) {
  switch (type) {
  case ElementType::F64:
    return loadPack<kCount>(static_cast<const double *>(from) + index, to);
  case ElementType::F16:
    return loadPack<kCount>(static_cast<const Half *>(from) + index, to);
  case ElementType::BF16:
    return loadPack<kCount>(static_cast<const BFloat *>(from) + index, to);
  default:
    return loadPack<kCount>(static_cast<const float *>(from) + index, to);
  }
}
template <typename C> SHARDC_DEVICE C loadFloat(const void *from, ElementType type, long long index) {
  C one[1];
  loadFloats<1>(from, type, index, one);
  return one[0];
}
template <typename C> SHARDC_DEVICE void storeFloat(void *to, ElementType type, long long index, C value) {
  switch (type) {
  case ElementType::F64:
    static_cast<double *>(to)[index] = double(value);
    break;
  case ElementType::F16:
    static_cast<Half *>(to)[index] = narrow<Half>(float(value));
    break;
  case ElementType::BF16:
    static_cast<BFloat *>(to)[index] = narrow<BFloat>(float(value));
    break;
  default:
    static_cast<float *>(to)[index] = float(value);
  }
}

/// Element of an index operand.
SHARDC_DEVICE long long loadIndex(const void *from, ElementType type, long long i) {
  return type == ElementType::I32 ? static_cast<const int *>(from)[i]
                                  : static_cast<const long long *>(from)[i];
}

} // namespace shardc::cuda::stored
