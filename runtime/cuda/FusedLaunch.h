// SPDX-License-Identifier: Apache-2.0
// From a fused command to the source of its kernel and that kernel's arguments.
#pragma once

#include "runtime/cuda/FusedSource.h"
#include "runtime/host/Checks.h"

namespace shardc::cuda {

struct FusedLaunch {
  FusedLayout layout;
  int64_t units = 0;           ///< 0: nothing to do
  std::vector<uint64_t> words; ///< the arguments, as FusedSource.h says
};

/// The program of the command, checked against its operands. False: `c` has the complaint.
bool readFused(const host::Binding &b, host::Checks &c, ScalarProgram &program);
/// How its elements are walked. Requires: what readFused checks.
bool layOutFused(const host::Binding &b, host::Checks &c, const ScalarProgram &program, FusedLaunch &to);

} // namespace shardc::cuda
