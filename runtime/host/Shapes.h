// SPDX-License-Identifier: Apache-2.0
// Commands whose kernels on host and CUDA devices check and see their operands alike.
#pragma once

#include "runtime/host/Checks.h"

namespace shardc::host {

// All return false where a check failed; `c` is of `b`.

/// data[outer, size, inner] and picked[outer, count, inner].
struct GatherShape {
  int64_t outer = 1, size = 1, inner = 1, count = 1;
  bool empty() const { return outer * inner * count == 0; }
};
/// `data` and `picked` are the arrays with attribute `axis` and with the indices' dims in its place.
bool gatherShape(Checks &c, const Array &data, const Array &indices, const Array &picked, GatherShape &shape);

/// The dims of x that stay and those that are joined, with the strides of x.
struct ReduceShape {
  Dims keptDims, keptStrides, reducedDims, reducedStrides;
};
/// Of reduce_*(x){axes, keep_dims} -> y. `needsOne`: no elements have no result.
bool reduceShape(Checks &c, const Binding &b, bool needsOne, ReduceShape &shape);

/// Of concat(x...){axis} -> y: the part of y that each operand fills.
bool concatParts(Checks &c, const Binding &b, llvm::SmallVectorImpl<Array> &parts);
/// Of pad(x){before, after, value} -> y: the part of y that x fills.
bool padPart(Checks &c, const Binding &b, Array &part, double &value);

/// Rows of x that are normalised.
struct NormShape {
  DType dtype = DType::F32;
  Dims rows, row; ///< dims before the axis, and from it on
  int64_t count() const { return numElements(rows); }
  int64_t length() const { return numElements(row); }
};
/// From x and the attribute axis; rows are contiguous. Does not look at the type of x.
bool normShape(Checks &c, const Array &x, NormShape &shape);

} // namespace shardc::host
