// SPDX-License-Identifier: Apache-2.0
// The types of dy and x that the gradients of norms take: equal ones, and f32 beside 16-bit ones.
#pragma once

#include "runtime/cuda/Dispatch.cuh"
#include "runtime/cuda/NormLaunch.h"

namespace shardc::cuda {

/// Calls f with null pointers of the types of dy and x.
template <typename F> cudaError_t withNormTypes(const NormGradArgs &a, F f) {
  return withFloat(a.xType, [&](auto *x) {
    using X = Pointee<decltype(x)>;
    if (a.dyType == a.xType)
      return f(x, x);
    if constexpr (sizeof(X) == 4) {
      return a.dyType == ElementType::F16 ? f((__half *)nullptr, x) : f((__nv_bfloat16 *)nullptr, x);
    } else if constexpr (sizeof(X) == 2) {
      return f((float *)nullptr, x);
    }
    return cudaErrorInvalidValue;
  });
}

} // namespace shardc::cuda
