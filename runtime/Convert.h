// SPDX-License-Identifier: Apache-2.0
// Conversion of file elements to what a plan wants: only where no label or token id can change its
// meaning.
#pragma once

#include "ir/base/DType.h"

namespace shardc {

/// Same type; int32 to int64; any float to f32 or f64 (f64 to f32 rounds to nearest).
bool isConvertible(DType from, DType to);

/// Converts `count` elements; `from` may be unaligned, `to` is not. Requires: isConvertible.
void convertElements(const void *from, DType fromType, void *to, DType toType, int64_t count);

/// To a 16-bit float, to nearest even.
void roundElements(const float *from, void *to, DType toType, int64_t count);

} // namespace shardc
