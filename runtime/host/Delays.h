// SPDX-License-Identifier: Apache-2.0
// Random pauses between commands, which bring missing waits to light.
#pragma once

#include <cstdint>

namespace shardc::host {

/// Of one stream of one rank; the lengths are the same in each run with the same seed.
class Delays {
public:
  /// Seed 0: none.
  Delays(uint64_t seed, unsigned rank, unsigned stream);
  /// Most often nothing, or up to 200 microseconds; now and then some milliseconds.
  void pause() {
    if (state_) [[unlikely]]
      sleep();
  }

private:
  void sleep();
  uint64_t state_;
};

} // namespace shardc::host
