// SPDX-License-Identifier: Apache-2.0
#include "tools/train/LastResort.h"
#include "runtime/Ranks.h"
#include "tools/common/Report.h"
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace shardc {

LastResort::LastResort(const Communicator &communicator, double seconds)
    : communicator_(communicator) {
  sigset_t all, before; // signals are the main thread's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, seconds] { run(seconds); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LastResort::~LastResort() {
  {
    std::lock_guard lock(mutex_);
    isOver_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LastResort::run(double seconds) {
  constexpr double kInterval = 0.2;
  std::unique_lock lock(mutex_);
  for (double aborted = 0; aborted < seconds; aborted += communicator_.aborted() ? kInterval : 0)
    if (changed_.wait_for(lock, std::chrono::duration<double>(kInterval),
                          [this] { return isOver_; }))
      return;
  std::_Exit(reportAndExitCode(groupError(communicator_, Exit::Fault)));
}

} // namespace shardc
