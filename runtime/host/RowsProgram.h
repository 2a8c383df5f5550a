// SPDX-License-Identifier: Apache-2.0
// What a fused_rows command computes, read and checked; for host and CUDA.
#pragma once

#include "ir/base/ScalarRows.h"
#include "runtime/host/Checks.h"

namespace shardc::host {

/// Most elements of a row.
constexpr int64_t kMostRowLength = 65536;

struct RowsProgram {
  ScalarProgram program;
  std::vector<RowKind> kinds; ///< of its registers
  std::vector<bool> used;     ///< instructions that lead to a result
  Dims dims;                  ///< of all elements
  int64_t axis = 0, parts = 1;
  int64_t rows = 0, length = 0;

  llvm::ArrayRef<int64_t> rowDims() const { return llvm::ArrayRef(dims).take_front(axis); }
  llvm::ArrayRef<int64_t> columnDims() const { return llvm::ArrayRef(dims).drop_front(axis); }
  RowKind kindOf(size_t output) const { return kinds[program.outputs[output]]; }
};

/// False: `c` has the complaint.
bool readRowsProgram(const Binding &b, Checks &c, RowsProgram &to);

} // namespace shardc::host
