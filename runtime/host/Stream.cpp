// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Stream.h"
#include "runtime/host/Parallel.h"

namespace shardc::host {

bool Stream::issue(int program, uint32_t run, const std::atomic<bool> &stop) {
  for (const Issue &issue : programs[program]) {
    for (const Event *event : issue.waits)
      if (!event->wait(run))
        return true;
    if (stop.load(std::memory_order_relaxed))
      return true;
    delays.pause();
    issue.kernel->run();
    if (fault.raised()) [[unlikely]]
      return false;
    if (issue.collective)
      delays.pause();
    for (Event *event : issue.signals)
      event->signal(run);
  }
  return true;
}

StreamThread::StreamThread(llvm::unique_function<void(int program)> issue)
    : issue_(std::move(issue)), thread_([this] { loop(); }) {}

StreamThread::~StreamThread() {
  start(kQuit);
  thread_.join();
}

void StreamThread::start(int program) {
  program_ = program;
  starts_ = nextRun(starts_);
  go_.signal(starts_);
}

void StreamThread::loop() {
  useThreads(1); // the cores are the compute stream's
  for (uint32_t start = 1;; start = nextRun(start)) {
    (void)go_.wait(start);
    if (program_ == kQuit)
      return;
    issue_(program_);
    done_.signal(start);
  }
}

} // namespace shardc::host
