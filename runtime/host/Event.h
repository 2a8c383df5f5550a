// SPDX-License-Identifier: Apache-2.0
// An event of the plan: one stream signals it, others wait, once in each run of a program.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardc::host {

/// The number of the run that follows run `run`.
constexpr uint32_t nextRun(uint32_t run) { return run == (1u << 31) - 1 ? 1 : run + 1; }

/// Needs no reset: it carries the number of the run (1 to 2^31 - 1) in which it was last signalled or stopped. What the
/// signalling thread did before, those that waited see; nothing else is ordered. Allocates nothing.
class Event {
public:
  void signal(uint32_t run) { set(run << 1); }
  /// Ends the waits of that run.
  void stop(uint32_t run) { set(run << 1 | 1); }
  /// Until the run's signal (true) or stop (false). Spins briefly, then sleeps.
  [[nodiscard]] bool wait(uint32_t run) const;

private:
  void set(uint32_t value) {
    value_.store(value, std::memory_order_release);
    value_.notify_all();
  }
  std::atomic<uint32_t> value_{0};
};

} // namespace shardc::host
