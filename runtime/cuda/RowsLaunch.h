// SPDX-License-Identifier: Apache-2.0
// From a fused_rows command to the source of its kernel and that kernel's arguments.
#pragma once

#include "runtime/cuda/RowsSource.h"

namespace shardc::cuda {

struct RowsLaunch {
  RowsLayout layout;
  unsigned blocks = 1;
  std::vector<uint64_t> words; ///< the arguments, as RowsSource.h says
};

/// How its rows are spread over the threads of a device with so many multiprocessors. Requires: what readRowsProgram checks. False: `c` has the complaint.
bool layOutRows(const host::Binding &b, host::Checks &c, const host::RowsProgram &program, int multiprocessors, RowsLaunch &to);

} // namespace shardc::cuda
