// SPDX-License-Identifier: Apache-2.0
// One instruction of a scalar program as a loop over a tile of dense registers.
#pragma once

#include "ir/base/ScalarExpr.h"

namespace shardc::host {

/// y[i] = f(a[i], b[i], c[i]) for i < n; y may be one of a, b, c. Unused ones are ignored.
using Loop = void (*)(void *y, const void *a, const void *b, const void *c, int64_t n);

/// The loop for `code` over operands of type `operand` with result `result` (they differ for
/// comparisons and Convert). Null: not defined for these types. Not for Input, Number, Keep.
Loop findLoop(ScalarCode code, DType operand, DType result);

/// pow(a, exponent) by products and roots; null if `exponent` has no such form. f32 and f64.
Loop findPowLoop(double exponent, DType dtype);

/// Sets n elements of `dtype` to `value`.
void fillRegister(void *y, DType dtype, double value, int64_t n);

} // namespace shardc::host
