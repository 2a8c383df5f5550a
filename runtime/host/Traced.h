// SPDX-License-Identifier: Apache-2.0
// A kernel that tells a trace when it ran.
#pragma once

#include "runtime/Trace.h"
#include "runtime/host/Kernel.h"
#include <chrono>

namespace shardc::host {

class Traced final : public Kernel {
public:
  using Time = std::chrono::steady_clock::time_point;
  /// Command `command` of program `program`; `start` is when the program's run started. All references outlive it.
  Traced(std::unique_ptr<Kernel> kernel, Trace &trace, int program, int command, const Time &start)
      : kernel_(std::move(kernel)), trace_(trace), program_(program), command_(command), start_(start) {}

  void run() override {
    double from = now();
    kernel_->run();
    trace_.set(program_, command_, from, now());
  }

private:
  double now() const { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count(); }

  std::unique_ptr<Kernel> kernel_;
  Trace &trace_;
  int program_, command_;
  const Time &start_;
};

} // namespace shardc::host
