// SPDX-License-Identifier: Apache-2.0
// The sum over ranks.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc {

/// out[i] = parts[0][begin + i] + parts[1][begin + i] + ... for n elements, added in that order in the
/// arrays' type; 16-bit floats in float, rounded once. Integers wrap around. `out` may be the same place of a
/// part. `dtype` is not Bool; one part at least.
void sumParts(DType dtype, llvm::ArrayRef<const char *> parts, int64_t begin, void *out, int64_t n);

} // namespace shardc
