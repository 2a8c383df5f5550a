// SPDX-License-Identifier: Apache-2.0
// In what order a kernel over rows computes: phase k knows what k sums or maxima of the row, one after the other, lead to.
#pragma once

#include "runtime/host/RowsProgram.h"

namespace shardc::cuda {

/// Requires: the program, which it keeps a reference to, passed readRowsProgram.
class RowsPhases {
public:
  explicit RowsPhases(const host::RowsProgram &program);

  unsigned last() const { return last_; }
  /// The phase from which on register i is known.
  unsigned level(size_t i) const { return levels_[i]; }
  /// Elements that the loop of a phase computes, or takes from an earlier one, in order: what sums and results want then, with all
  /// that leads there.
  std::vector<size_t> neededAt(unsigned level) const;
  /// The phase that computes element i first.
  unsigned firstOf(size_t i) const { return first_[i]; }
  /// Do later phases take it from registers? What only widens an operand is computed again.
  bool isKept(size_t i) const { return kept_[i]; }
  bool isJoin(size_t i) const { return code_[i].code == ScalarCode::RowSum || code_[i].code == ScalarCode::RowMax; }
  /// How many numbers a thread keeps for each of its elements: what one phase hands to the next, and sums of columns.
  unsigned keptNumbers() const;

private:
  bool isCheap(size_t i) const;

  const host::RowsProgram &p_;
  const std::vector<ScalarInstr> &code_;
  std::vector<unsigned> levels_, first_; ///< by register
  std::vector<bool> kept_;               ///< by register
  unsigned last_ = 0;
};

} // namespace shardc::cuda
