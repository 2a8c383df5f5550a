// SPDX-License-Identifier: Apache-2.0
// What layer_norm and rms_norm share: rows are normalised over the dims [axis, rank).
#pragma once

#include "runtime/host/Rows.h"
#include "runtime/host/Simd.h"

namespace shardc::host {

struct NormShape {
  DType dtype = DType::F32;
  Dims rows, row; ///< dims before the axis, and from it on
};

/// From x and the attribute axis; x has contiguous rows.
inline bool normShape(Checks &c, const Array &x, NormShape &shape) {
  int64_t axis;
  if (!(c.real(x) && c.axisAttr("axis", x.dims.size(), axis)))
    return false;
  shape.dtype = x.dtype;
  shape.rows.assign(x.dims.begin(), x.dims.begin() + axis);
  shape.row.assign(x.dims.begin() + axis, x.dims.end());
  Array row;
  row.dims = shape.row;
  row.strides.assign(x.strides.begin() + axis, x.strides.end());
  return c.that(row.contiguous(), "layout: wanted row-major rows");
}

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
