// SPDX-License-Identifier: Apache-2.0
// Memory that each product has for itself, for the counters of the library: it clears them before it runs. As
// nobody else writes there, a graph clears all at once, at its start.
#pragma once

#include "runtime/cuda/Scratch.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc::cuda {

class Counters {
public:
  /// Of one product, aligned to as much.
  static constexpr int64_t kBytes = 256;

  /// A number for `at`.
  size_t add() { return count_++; }
  /// Once, when all are added. Error: the device has no more memory.
  llvm::Error allocate() { return memory_.reserve(int64_t(count_) * kBytes); }
  /// Null before they are allocated.
  void *at(size_t number) const {
    return memory_.data() ? memory_.as<char>() + int64_t(number) * kBytes : nullptr;
  }
  llvm::MutableArrayRef<char> all() const { return {memory_.as<char>(), size_t(memory_.bytes())}; }

private:
  Scratch memory_;
  size_t count_ = 0;
};

} // namespace shardc::cuda
