// SPDX-License-Identifier: Apache-2.0
// Where all ranks wait for each other, again and again: threads of one process, or of several that share the
// memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardc {

/// Lives in memory of its own or in shared memory (no pointers; all zero bits are a new one). What a rank
/// wrote before it arrived, all others can read after they have passed.
class alignas(64) Barrier {
public:
  /// One of `ranks` arrives; true when all have. False if the barrier was or becomes disturbed before: for
  /// good, then.
  [[nodiscard]] bool arriveAndWait(unsigned ranks);
  /// Wakes all that wait: nobody can count on the others any more. From any thread; waits for nothing.
  void disturb();

private:
  std::atomic<uint32_t> arrived_ = 0;
  /// Bit 0: disturbed. The rest: how often all have met.
  std::atomic<uint32_t> meetings_ = 0;
};

} // namespace shardc
