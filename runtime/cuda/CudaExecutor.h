// SPDX-License-Identifier: Apache-2.0
// The executor on a device: one rank's memory, kernels bound to it, streams, and a graph of each program.
#pragma once

#include "ir/plan/Scalars.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Counters.h"
#include "runtime/cuda/Event.h"
#include "runtime/cuda/Executor.h"
#include "runtime/cuda/Graph.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Pinned.h"
#include "runtime/cuda/Staging.h"
#include "runtime/host/BindCommand.h"
#include <map>
#include <optional>

namespace shardc::cuda {

class CudaExecutor final : public Executor {
public:
  CudaExecutor(const plan::Plan &plan, const ExecutorOptions &options, const DeviceOptions &deviceOptions)
      : plan_(plan), options_(options), deviceOptions_(deviceOptions) {}
  ~CudaExecutor() override;
  /// Once, before anything else.
  llvm::Error load();

  void *buffer(uint32_t) override { return nullptr; }
  llvm::Error write(uint32_t buffer, uint64_t offset, const void *from, uint64_t bytes) override;
  llvm::Error read(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes) override;
  unsigned rank() const override;
  double *scalars() override { return scalars_; }
  int program(llvm::StringRef name) const override { return programIndex(plan_, name); }
  llvm::Error run(int program) override;
  llvm::Error start(int program) override;
  llvm::Error fetch(uint32_t buffer, uint64_t offset, void *to, uint64_t bytes) override;
  llvm::Error finish() override;
  double peakFlops() const override;

private:
  struct Issue {
    std::unique_ptr<Kernel> kernel;
    Stream *stream;
    llvm::SmallVector<Event *, 2> waits, signals;
    Event begin, end; ///< of traced ones
  };
  struct Program {
    std::vector<Issue> issues;
    std::vector<Stream *> forks; ///< streams with commands but the first
    bool hasRun = false;
    Graph graph;
  };

  void progress(const llvm::Twine &done) const {
    if (deviceOptions_.onProgress)
      deviceOptions_.onProgress(done.str());
  }
  llvm::Error checkKernels() const;
  llvm::Error openCommunicator();
  llvm::Error allocate();
  llvm::Error loadConstants();
  /// All programs, and the algorithms of their products.
  llvm::Error bindPrograms();
  /// What binds operands of this rank's memory.
  host::RankContext rankContext() const;
  /// The generated kernels of all programs, side by side. How many are new to the cache on disk.
  unsigned compileKernels();
  llvm::Error bindProgram(const plan::Program &program);
  llvm::Expected<Stream *> streamOf(const plan::Command &command);
  /// Launches its kernel; stamps its events where there is a trace.
  llvm::Error launch(Issue &issue, bool captured);
  /// Tells the trace when the commands ran.
  llvm::Error leaveTrace(int index);
  /// Everything that a run of the program enqueues, on the first stream and its forks.
  llvm::Error enqueue(Program &program, bool captured);
  llvm::Error enqueueFork(Program &program);
  llvm::Error begin(Program &program);
  /// Until the device has done what was begun; ends where the group has.
  llvm::Error wait();
  /// An error of communication may be another rank's end, of which the group hears soon: then that is the cause.
  llvm::Error causeOf(llvm::Error error) const;
  /// What the kernels found wrong.
  llvm::Error takeFault();
  /// After something that stopped between: nothing enqueued is left waiting for others that do not come.
  llvm::Error giveUp(llvm::Error error);
  /// An error that ends this rank's run, told to the others.
  llvm::Error fail(std::string text);

  cudaStream_t first() { return streams_.begin()->second->get(); }
  DeviceCommunicator *communicator() const { return communicator_.get(); }

  const plan::Plan &plan_;
  ExecutorOptions options_;
  DeviceOptions deviceOptions_;
  // Destroyed from the last to the first: graphs before communicators, all before the device.
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  std::optional<Memory> memory_;
  std::unique_ptr<Counters> counters_ = std::make_unique<Counters>(); ///< of all programs' products
  double scalars_[kNumScalars] = {};
  Staging scalarsStaging_;              ///< scalars_ of each program that is begun
  std::map<uint32_t, Staging> staging_; ///< of inputs, by buffer
  Pinned fault_;                        ///< what a program leaves
  Fetched fetched_;
  std::map<unsigned, std::unique_ptr<Stream>> streams_; ///< by the plan's number; 0 is always there
  Event started_;
  Event finished_;       ///< of all that was begun
  bool isBegun_ = false; ///< and not finished
  Event stamp_; ///< the start, where there is a trace
  std::map<Stream *, Event> joined_; ///< a stream's last event in a program
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Program> programs_;
  bool isLost_ = false; ///< kernels may never end
};

} // namespace shardc::cuda
