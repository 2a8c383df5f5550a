// SPDX-License-Identifier: Apache-2.0
// Scratch memory of kernels on devices, as the compiler reserves it and kernels may use it. Bytes.
#pragma once

#include <cstdint>

namespace shardc {

/// Of a product, whatever its size: what its library's fastest algorithms want.
constexpr int64_t kProductWorkspace = 32 << 20;

/// Of a sum of squares: a double for each block of so many elements. They decide the order of the sum.
constexpr int64_t kSquaresPerBlock = 1 << 13;
constexpr int64_t squaresWorkspace(int64_t elements) {
  return 8 * ((elements + kSquaresPerBlock - 1) / kSquaresPerBlock);
}

/// Of a loss: what each row adds to the sum and to the count of hits.
constexpr int64_t lossWorkspace(int64_t rows) { return 16 * rows; }

/// Of the gradient of a table's rows: the ids, sorted, and sums of runs that reach over `kIdsPerPiece` sorted ids, in up to
/// `sumBytes` a column.
constexpr int64_t kIdsPerPiece = 16;
constexpr int64_t rowSumsWorkspace(int64_t ids, int64_t width, int64_t sumBytes) {
  const int64_t pieces = (ids + kIdsPerPiece - 1) / kIdsPerPiece;
  return 2 * pieces * width * sumBytes + 28 * ids + (1 << 20);
}

} // namespace shardc
