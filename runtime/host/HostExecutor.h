// SPDX-License-Identifier: Apache-2.0
// The executor on the host: one rank's memory, kernels, and a thread for each stream but the first.
#pragma once

#include "runtime/Executor.h"
#include "runtime/host/BindCommand.h"
#include "runtime/host/Memory.h"
#include "runtime/host/Stream.h"
#include "runtime/host/Traced.h"
#include <mutex>

namespace shardc::host {

class HostExecutor final : public Executor {
public:
  HostExecutor(const plan::Plan &plan, const ExecutorOptions &options) : plan_(plan), options_(options) {}
  /// Once, before anything else.
  llvm::Error load();

  void *buffer(uint32_t index) override { return (*memory_)[index]; }
  double *scalars() override { return scalars_; }
  unsigned rank() const override;
  int program(llvm::StringRef name) const override;
  llvm::Error run(int program) override;

private:
  llvm::Error loadConstants();
  llvm::Error bindProgram(int program);
  llvm::Expected<Stream *> streamOf(const plan::Command &command);
  llvm::Error addStream(unsigned index);
  void startThreads();
  /// On the stream's thread.
  void issue(Stream &stream, int program);
  /// Ends this run on all streams, and those of the other ranks. Any thread.
  void fail(const Fault &fault);
  llvm::Error takeFailure();

  const plan::Plan &plan_;
  ExecutorOptions options_;
  std::optional<Memory> memory_;
  double *scalars_ = nullptr;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Stream>> streams_; ///< the first is the plan's stream 0
  Traced::Time start_;                           ///< of this run, where it is traced
  uint32_t run_ = 0;                             ///< number of this run
  std::atomic<bool> stop_{false};                ///< this run has failed
  std::mutex failing_;
  std::string failure_;                                ///< why; guarded by failing_ while streams run
  std::vector<std::unique_ptr<StreamThread>> threads_; ///< of streams_[1...]; end first
};

} // namespace shardc::host
