// SPDX-License-Identifier: Apache-2.0
// How an op can be a member of a group over rows: its iteration space and what each result is.
#pragma once

#include "ir/base/ScalarRows.h"
#include "ir/graph/Graph.h"
#include <optional>

namespace shardc {

struct RowForm {
  Dims dims;              ///< every element that it goes over
  int64_t axis = 0;       ///< rows are the dims from it on
  llvm::StringRef lines;  ///< OpDef::rows or OpDef::columns
  llvm::SmallVector<RowKind, 3> results;

  int64_t rows() const { return numElements(llvm::ArrayRef(dims).take_front(axis)); }
  int64_t length() const { return numElements(llvm::ArrayRef(dims).drop_front(axis)); }
  /// One number a row, as an array that broadcasts to `dims`.
  Dims perRow() const;
  bool isColumns() const { return llvm::is_contained(results, RowKind::Column) && results.size() == 1; }
};

/// Norms, softmax, their gradients, and sums and maxima over last or first dims, where rows are neither too long for a kernel
/// that holds them nor too few to be worth one. Pointwise ops have none.
std::optional<RowForm> rowFormOf(const Op &op);

/// What becomes of a sum of columns without another kernel: up to `last`, of element type `dtype`. `chain`: the ops in between.
struct ColumnTail {
  Value *last;
  DType dtype;
  llvm::SmallVector<Op *, 2> chain;
};
ColumnTail tailOf(Value *columns);

/// Joins the second passes of sums of columns of a layer: each as late as its first reader permits, all that wait there as one op.
void joinColumnSums(Graph &graph);

} // namespace shardc
