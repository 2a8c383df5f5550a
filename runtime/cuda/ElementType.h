// SPDX-License-Identifier: Apache-2.0
// DType for code that nvcc compiles: the same numbers, no other header.
#pragma once

namespace shardc::cuda {

enum class ElementType : int { F32 = 0, F64 = 1, F16 = 2, BF16 = 3, I32 = 4, I64 = 5, U8 = 6, Bool = 7 };

/// An array of floats whose type is known when running only: scalars, rows of statistics.
struct AnyFloats {
  void *data = nullptr;
  ElementType type = ElementType::F32;
};

} // namespace shardc::cuda
