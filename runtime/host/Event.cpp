// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Event.h"

namespace shardc::host {

bool Event::wait(uint32_t run) const {
  constexpr int kSpins = 128; // a few microseconds: less than a thread takes to fall asleep and wake up
  uint32_t value;
  for (int spin = 0; (value = value_.load(std::memory_order_acquire)) >> 1 != run; ++spin) {
    if (spin >= kSpins)
      value_.wait(value, std::memory_order_acquire);
#if defined(__x86_64__) || defined(__i386__)
    else
      __builtin_ia32_pause();
#endif
  }
  return !(value & 1);
}

} // namespace shardc::host
