// SPDX-License-Identifier: Apache-2.0
// A rank whose group has ended must end too, whatever it hangs in.
#pragma once

#include "runtime/comm/Communicator.h"
#include <condition_variable>
#include <mutex>
#include <thread>

namespace shardc {

/// Ends the process with exit code 4, saying why, if the group has been aborted for some time and
/// this is still there: a call of a driver may wait for a rank that is gone, and never return.
/// Requires: the communicator outlives it.
class LastResort {
public:
  explicit LastResort(const Communicator &communicator, double seconds = 15);
  ~LastResort();

private:
  void run(double seconds);

  const Communicator &communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool isOver_ = false;
  std::thread thread_;
};

} // namespace shardc
