// SPDX-License-Identifier: Apache-2.0
// From an element type, or a width, to the C++ type in which elements are stored.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace shardc::cuda {

template <typename P> using Pointee = std::remove_pointer_t<P>;

/// f(null pointer of the type). Requires: a float type.
template <typename F> auto withFloat(ElementType type, F f) {
  switch (type) {
  case ElementType::F64:
    return f((double *)nullptr);
  case ElementType::F16:
    return f((__half *)nullptr);
  case ElementType::BF16:
    return f((__nv_bfloat16 *)nullptr);
  default:
    return f((float *)nullptr);
  }
}
/// The same for every type. Bool is a byte.
template <typename F> auto withStored(ElementType type, F f) {
  switch (type) {
  case ElementType::I32:
    return f((int *)nullptr);
  case ElementType::I64:
    return f((long long *)nullptr);
  case ElementType::U8:
  case ElementType::Bool:
    return f((unsigned char *)nullptr);
  default:
    return withFloat(type, f);
  }
}
/// The same for what is moved only: 1, 2, 4, 8 or 16 bytes, at most kMost.
template <int kMost = 16, typename F> auto withBytes(int bytes, F f) {
  if constexpr (kMost == 16)
    if (bytes == 16)
      return f((uint4 *)nullptr);
  switch (bytes) {
  case 1:
    return f((unsigned char *)nullptr);
  case 2:
    return f((unsigned short *)nullptr);
  case 4:
    return f((unsigned *)nullptr);
  default:
    return f((unsigned long long *)nullptr);
  }
}

} // namespace shardc::cuda
