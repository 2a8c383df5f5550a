// SPDX-License-Identifier: Apache-2.0
// Compares stored matrices: equal, or one the transpose of the other.
#pragma once

#include "frontend/TensorSource.h"

namespace shardc {

/// Bit-wise equality of `a` and `b`, or of `a` and the transpose of `b` (rank 2). False where a
/// value is absent or type or shape differ. Stops at the first difference.
bool sameValues(const TensorSource &a, const TensorSource &b, bool transposed);

/// Every element has the same bits (so it has for 0 and 1 elements).
bool isConstant(const TensorSource &a);

/// Equal for a matrix and its transpose; differs, almost surely, for others. Reads four elements.
/// Requires: rank 2, values there.
std::string matrixKey(const TensorSource &a);

} // namespace shardc
