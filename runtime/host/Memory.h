// SPDX-License-Identifier: Apache-2.0
// The arenas of one rank, and where each buffer of the plan lies in them.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Arena.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstring>
#include <vector>

namespace shardc::host {

/// A plan is untrusted: buffers outside their space are errors. Memory is zero at first.
class Memory {
public:
  /// `disjoint`: no two buffers share memory, save those that commands write over each other in place (`in_place`); these keep
  /// their places relative to each other.
  static llvm::Expected<Memory> create(const plan::Plan &plan, bool disjoint);
  char *operator[](uint32_t buffer) const { return buffers_[buffer]; }
  size_t size() const { return buffers_.size(); }
  llvm::ArrayRef<char *> buffers() const { return buffers_; }
  /// Before a program runs: where memory is disjoint, fills all that lives in this program only with NaN, so that what is
  /// read before it is written is not what an earlier run left.
  void forget(int program) {
    for (llvm::MutableArrayRef<char> part : forgotten_[program])
      std::memset(part.data(), 0xff, part.size());
  }

private:
  std::vector<Arena> arenas_;   // by space
  std::vector<char *> buffers_; // by index in the plan
  std::vector<std::vector<llvm::MutableArrayRef<char>>> forgotten_; // by program
};

} // namespace shardc::host
