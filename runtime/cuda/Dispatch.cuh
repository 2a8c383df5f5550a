// SPDX-License-Identifier: Apache-2.0
// From an element type to the C++ type in which it is stored.
#pragma once

#include "runtime/cuda/Stored.cuh"

namespace shardc::cuda::stored {

/// Calls f with a null pointer of the type. Bool is a byte.
template <typename F> void withStored(ElementType type, F f) {
  switch (type) {
  case ElementType::F32:
    return f((float *)nullptr);
  case ElementType::F64:
    return f((double *)nullptr);
  case ElementType::F16:
    return f((Half *)nullptr);
  case ElementType::BF16:
    return f((BFloat *)nullptr);
  case ElementType::I32:
    return f((int *)nullptr);
  case ElementType::I64:
    return f((long long *)nullptr);
  default:
    return f((unsigned char *)nullptr);
  }
}
/// The same for the float types only.
template <typename F> void withFloats(ElementType type, F f) {
  switch (type) {
  case ElementType::F64:
    return f((double *)nullptr);
  case ElementType::F16:
    return f((Half *)nullptr);
  case ElementType::BF16:
    return f((BFloat *)nullptr);
  default:
    return f((float *)nullptr);
  }
}
template <typename P> struct PointeeOf;
template <typename T> struct PointeeOf<T *> { using Type = T; };
template <typename P> using Pointee = typename PointeeOf<P>::Type;

} // namespace shardc::cuda::stored
