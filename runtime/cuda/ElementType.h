// SPDX-License-Identifier: Apache-2.0
// DType for code that nvcc compiles: the same numbers, no other header.
#pragma once

namespace shardc::cuda {

enum class ElementType : int { F32 = 0, F64 = 1, F16 = 2, BF16 = 3, I32 = 4, I64 = 5, U8 = 6, Bool = 7 };

} // namespace shardc::cuda
