// SPDX-License-Identifier: Apache-2.0
// From a fused_rows command to the source of its kernel and that kernel's arguments.
#pragma once

#include "runtime/cuda/RowsSource.h"

namespace shardc::cuda {

struct RowsLaunch {
  RowsLayout layout;
  int64_t rows = 0, parts = 0; ///< parts: of sums of columns; 0: there are none
  std::vector<uint64_t> words; ///< the arguments, as RowsSource.h says

  /// Blocks of a launch on a device that holds so many at a time: all take as many turns. With sums of columns, block p is their
  /// part p.
  unsigned blocks(int64_t resident) const;
};

/// How its rows are spread over threads. Requires: what readRowsProgram checks. False: `c` has the complaint.
bool layOutRows(const host::Binding &b, host::Checks &c, const host::RowsProgram &program, RowsLaunch &to);

} // namespace shardc::cuda
