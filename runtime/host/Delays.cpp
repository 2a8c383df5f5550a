// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Delays.h"
#include "runtime/Mix.h"
#include <chrono>
#include <thread>

namespace shardc::host {

Delays::Delays(uint64_t seed, unsigned rank, unsigned stream)
    : state_(seed ? mix(seed ^ mix(uint64_t(rank) << 32 | stream)) | 1 : 0) {}

void Delays::sleep() {
  state_ = mix(state_) | 1;
  uint64_t kind = state_ >> 8 & 127, length = state_ >> 16 & 0xffff;
  uint64_t microseconds = kind == 0 ? 1000 + length % 4000 : kind < 48 ? 1 + length % 200 : 0;
  if (microseconds)
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

} // namespace shardc::host
