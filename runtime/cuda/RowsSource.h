// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for a scalar program over rows (ir/base/ScalarRows.h) of broadcast and strided operands.
//
// `threads` threads hold a row in registers, each `packs` packs of `width` neighbours; `groups` such rows of threads make
// a block. Block p has the rows p, p + gridDim.x, ...: with sums of columns a block is a part of them. What the source
// depends on is the program, how a row is spread over threads, and which dims each operand steps through.
#pragma once

#include "runtime/host/RowsProgram.h"

namespace shardc::cuda {

struct RowsOperand {
  DType dtype = DType::F32;
  bool rows = false, columns = false; ///< does its place depend on the row, on the place in it?
};

struct RowsLayout {
  llvm::SmallVector<RowsOperand, 4> inputs;
  unsigned rowRank = 0, columnRank = 0; ///< dims that operands are walked by
  unsigned width = 1;                   ///< 1, 2, 4 or 8
  unsigned packs = 1, threads = 32, groups = 1;
  bool whole = false; ///< every thread has all its packs in every row

  unsigned blockThreads() const { return threads * groups; }
};

/// The kernel is extern "C", called kRowsName, and takes one struct of 64-bit words:
///   addresses of the inputs, of the results; rows; elements of a row; address of the step's scalars;
///   the id of each dropout, in the order of `program.code`;
///   for each walked dim of rows but the outermost, innermost first: size, and Divider's magic + 2^32 shift; the same for
///   the dims in a row, the innermost in packs;
///   for each input that depends on rows its `rowRank` strides, innermost first; for each that depends on columns its
///   `columnRank` strides, innermost first (that in packs).
constexpr const char *kRowsName = "rows";
/// Deterministic: the same arguments give the same text. Requires: the program passed readRowsProgram and checkFused.
std::string rowsSource(const host::RowsProgram &program, const RowsLayout &layout);

} // namespace shardc::cuda
