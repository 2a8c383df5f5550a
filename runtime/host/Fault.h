// SPDX-License-Identifier: Apache-2.0
// Why a running kernel could not do its work: what it found wrong in its data (an index out of range; the first report stays),
// or that other ranks are gone. One for each stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace shardc::host {

class Fault {
public:
  /// Value `value` of `what` is outside [low, high). `place` must outlive the fault. Any thread.
  void report(const std::string &place, const char *what, int64_t value, int64_t low,
              int64_t high) {
    if (state_.exchange(1, std::memory_order_relaxed) != 0)
      return;
    place_ = &place, what_ = what, value_ = value, low_ = low, high_ = high;
  }
  /// Communication has ended; the communicator knows the cause.
  void loseRanks() { state_.store(2, std::memory_order_relaxed); }
  /// Asked between kernels, by the thread that runs them.
  bool raised() const { return state_.load(std::memory_order_relaxed); }
  bool lostRanks() const { return state_.load(std::memory_order_relaxed) == 2; }
  /// "PLACE: WHAT out of range: got V, wanted LOW to HIGH - 1". Requires: reported.
  std::string message() const {
    return *place_ + ": " + what_ + " out of range: got " + std::to_string(value_) +
           (low_ < high_ ? ", wanted " + std::to_string(low_) + " to " + std::to_string(high_ - 1)
                         : std::string(", wanted none: the table is empty"));
  }
  void clear() { state_.store(0, std::memory_order_relaxed); }

private:
  std::atomic<int> state_{0};
  const std::string *place_ = nullptr;
  const char *what_ = nullptr;
  int64_t value_ = 0, low_ = 0, high_ = 0;
};

/// What a kernel keeps to check the indices that it reads.
struct IndexCheck {
  Fault *fault = nullptr;
  std::string place;
  const char *what = "index";

  /// Brings `index` into [0, limit), reporting one that is not. Requires: limit > 0.
  int64_t operator()(int64_t index, int64_t limit) const {
    if (uint64_t(index) < uint64_t(limit)) [[likely]]
      return index;
    fault->report(place, what, index, 0, limit);
    return 0;
  }
  /// The same, with negative ones counted from the end as ONNX does.
  int64_t wrapped(int64_t index, int64_t limit) const {
    int64_t i = index < 0 ? index + limit : index;
    if (uint64_t(i) < uint64_t(limit)) [[likely]]
      return i;
    fault->report(place, what, index, -limit, limit);
    return 0;
  }
};

} // namespace shardc::host
