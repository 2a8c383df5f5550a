// SPDX-License-Identifier: Apache-2.0
// Commands of one stream, in order, and the thread that issues them.
#pragma once

#include "runtime/host/Delays.h"
#include "runtime/host/Event.h"
#include "runtime/host/Fault.h"
#include "runtime/host/Kernel.h"
#include "llvm/ADT/FunctionExtras.h"
#include <thread>
#include <vector>

namespace shardc::host {

/// A command, ready: waits for events, runs, signals events.
struct Issue {
  std::unique_ptr<Kernel> kernel;
  llvm::SmallVector<Event *, 2> waits, signals;
  bool collective = false;
};

struct Stream {
  Stream(unsigned index, size_t programs, const Delays &delays) : index(index), programs(programs), delays(delays) {}

  /// Issues the program in run number `run`. Ends early, with true, when `stop` is set; false: a kernel raised `fault`.
  [[nodiscard]] bool issue(int program, uint32_t run, const std::atomic<bool> &stop);

  const unsigned index; ///< the plan's number
  std::vector<std::vector<Issue>> programs;
  Delays delays;
  Fault fault; ///< of this stream's kernels
  std::unique_ptr<char[]> scratch; ///< of this stream's kernels, one after the other
  int64_t scratchBytes = 0;
};

/// Sleeps until it is given a program. `issue` runs there; the destructor ends the thread. For one caller.
class StreamThread {
public:
  explicit StreamThread(llvm::unique_function<void(int program)> issue);
  ~StreamThread();
  /// Requires: what was started before is joined.
  void start(int program);
  void join() { (void)done_.wait(starts_); }

private:
  static constexpr int kQuit = -1;
  void loop();

  llvm::unique_function<void(int program)> issue_;
  int program_ = 0;
  uint32_t starts_ = 0;
  Event go_, done_;
  std::thread thread_;
};

} // namespace shardc::host
