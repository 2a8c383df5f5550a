// SPDX-License-Identifier: Apache-2.0
// Scalar programs over rows: elements have a row and a place in it, and rowsum, rowmax and colsum join them.
// rowsum and rowmax give one number for the row, which later lines may use; colsum(x) is a result only: for
// each place in a row `parts` sums, the p-th of the rows whose index is p modulo `parts`.
#pragma once

#include "ir/base/ScalarExpr.h"

namespace shardc {

/// Most parts that a sum of columns may have.
constexpr int64_t kMostColumnParts = 4096;

/// What a register holds one number of.
enum class RowKind : uint8_t {
  Number,  ///< the same everywhere: no operand has a part in it
  Row,     ///< a row: made of sums and maxima of rows
  Element, ///< an element
  Column   ///< a place in a row, for each part
};

/// Of each register. Requires nothing: a program that checkRows refuses has kinds too.
std::vector<RowKind> rowKinds(const ScalarProgram &program);

/// Does it join elements at all?
bool joinsElements(const ScalarProgram &program);

/// "" or what is wrong: a sum of what is no element, a use of a colsum, a result that is a mere number.
std::string checkRows(const ScalarProgram &program);

} // namespace shardc
