// SPDX-License-Identifier: Apache-2.0
// Where a plan runs: on the host, or on CUDA devices if this build has them.
#pragma once

#include "runtime/Executor.h"
#include <optional>

namespace shardc {

enum class DeviceKind { Cpu, Cuda };

/// Of --device ("": what the plan is for). Errors: this build has no CUDA, this machine no device.
llvm::Expected<DeviceKind> chooseDevice(llvm::StringRef flag, const plan::Plan &plan);

struct RankDevice {
  DeviceKind kind = DeviceKind::Cpu;
  /// This process is that rank, of a launcher's; else ranks are threads, which share the first device.
  std::optional<unsigned> processRank;
  bool graphs = true;
  std::optional<std::string> tuning = std::nullopt; ///< file of algorithms, "": none; default: in the user's cache folder
  Trace *trace = nullptr; ///< ExecutorOptions.trace
};

/// On the rank's thread; all ranks call it. Communicator: never null.
llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, Communicator &communicator,
                                                         const RankDevice &device);

/// "device memory: 1.2 GiB for the plan, 530 MiB beside it". Requires: a CUDA device, on which `ranks` ranks of this process are;
/// the calling thread has made one.
std::string describeMemory(const plan::Plan &plan, unsigned ranks);

} // namespace shardc
