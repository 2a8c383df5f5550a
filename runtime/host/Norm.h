// SPDX-License-Identifier: Apache-2.0
// What layer_norm and rms_norm share: rows are normalised over the dims [axis, rank).
#pragma once

#include "runtime/host/Rows.h"
#include "runtime/host/Shapes.h"
#include "runtime/host/Simd.h"

namespace shardc::host {

/// scale, bias and their gradients; may be absent.
inline bool normRow(Checks &c, const Array &a, const NormShape &shape) {
  return !a || (c.dims(a, shape.row) && c.dtype(a, shape.dtype) && c.contiguous(a));
}

/// mean and rstd.
inline bool normStatistic(Checks &c, const Array &a, const NormShape &shape) {
  return c.dims(a, shape.rows) && c.dtype(a, shape.dtype) && c.contiguous(a);
}

/// Columns that are summed over all rows at once.
constexpr int64_t kNormColumns = 64;

/// Calls body(first column, width <= kNormColumns) for all columns, in parallel.
template <typename Body> void normColumns(int64_t rows, int64_t length, Body body) {
  int64_t blocks = (length + kNormColumns - 1) / kNormColumns;
  int64_t grain = 1 + (1 << 13) / (kNormColumns * (rows + 1));
  parallelFor(blocks, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block)
      body(block * kNormColumns, std::min(kNormColumns, length - block * kNormColumns));
  });
}

} // namespace shardc::host
