// SPDX-License-Identifier: Apache-2.0
// The sum over ranks, and which part of it is whose.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include <algorithm>

namespace shardc {

/// out[i] = parts[0][begin + i] + parts[1][begin + i] + ... for n elements, added in that order in the
/// arrays' type; 16-bit floats in float, rounded once. Integers wrap around. `out` may be the same place of a
/// part. `dtype` is not Bool; one part at least.
void sumParts(DType dtype, llvm::ArrayRef<const char *> parts, int64_t begin, void *out, int64_t n);

/// Slice r of an array of n elements, where n need not be a multiple of `ranks`.
struct Part {
  int64_t begin, count;
  Part(int64_t n, unsigned ranks, unsigned r) {
    int64_t slice = n / ranks, rest = n % ranks;
    begin = slice * r + std::min<int64_t>(r, rest);
    count = slice + (r < rest);
  }
};

} // namespace shardc
