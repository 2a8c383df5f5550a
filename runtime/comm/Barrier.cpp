// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/Barrier.h"
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shardc {
namespace {

// There may be more ranks than cores: whoever waits long must give its core away.
constexpr int kSpins = 100;
constexpr uint32_t kDisturbed = 1, kOneMeeting = 2;

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

// std::atomic's wait would not reach another process.
void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation, value, nullptr, nullptr, 0);
}

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

} // namespace

bool Barrier::arriveAndWait(unsigned ranks) {
  uint32_t before = meetings_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
    arrived_.store(0, std::memory_order_relaxed); // nobody arrives again before the next line
    meetings_.fetch_add(kOneMeeting, std::memory_order_acq_rel);
    futex(meetings_, FUTEX_WAKE, INT_MAX);
    return true;
  }
  for (int spins = 0;; ++spins) {
    uint32_t now = meetings_.load(std::memory_order_acquire);
    if ((now ^ before) & ~kDisturbed)
      return true; // even if disturbed since: all were here
    if (now & kDisturbed)
      return false;
    if (spins < kSpins)
      pause();
    else
      futex(meetings_, FUTEX_WAIT, now);
  }
}

void Barrier::disturb() {
  meetings_.fetch_or(kDisturbed, std::memory_order_acq_rel);
  futex(meetings_, FUTEX_WAKE, INT_MAX);
}

} // namespace shardc
