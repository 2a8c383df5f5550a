// SPDX-License-Identifier: Apache-2.0
// The elements of one array in a file, of which any run can be copied out.
#pragma once

#include "ir/base/DType.h"

namespace shardc {

/// The file's memory is kept by whoever made this; perhaps unaligned.
struct ElementSource {
  const uint8_t *data = nullptr;
  DType dtype = DType::F32;
  /// Not 0: `data` holds the transpose, [columns, rows], of the array [rows, columns].
  int64_t rows = 0, columns = 0;
};

/// Copies elements [first, first + count), counted in row-major order of the array, and converts them. Any number of
/// threads at once. Requires: isConvertible(source.dtype, toType); `to` is aligned.
void copyElements(const ElementSource &source, int64_t first, int64_t count, void *to, DType toType);

} // namespace shardc
