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
  void (*onProgress)(llvm::StringRef done) = nullptr; ///< is told what takes long; null: nobody is
};

/// On the rank's thread; all ranks call it. Communicator: never null.
llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, Communicator &communicator,
                                                         const RankDevice &device);

struct DeviceFacts {
  std::string name; ///< "NVIDIA H200"
  uint64_t memoryBytes = 0;
};
/// Of the CUDA device that the calling thread uses; empty where it uses none.
DeviceFacts deviceFacts();

/// How many CUDA devices this process sees.
unsigned cudaDevices();

/// An error (exit code 3) where a rank of the plan takes more than `budget` bytes by what the plan says. 0: any.
llvm::Error checkMemory(const plan::Plan &plan, uint64_t budget);

/// Device memory as it is, when all that a step needs is there.
struct MemoryUse {
  uint64_t plan = 0;   ///< bytes of a rank's spaces
  uint64_t beside = 0; ///< what is taken beyond those of all ranks
  unsigned ranks = 1;  ///< that share the device
};
/// Requires: a CUDA device, which `ranks` ranks of this process share; the calling thread has made one.
MemoryUse memoryUse(const plan::Plan &plan, unsigned ranks);
/// "device memory: 1.20 GiB for the plan, 530 MiB beside it".
std::string describe(const MemoryUse &use);
/// An error (exit code 3) where what lies beside the plan's memory is more than the plan said, by 64 MiB or more, and breaks the budget.
llvm::Error checkMemory(const plan::Plan &plan, uint64_t budget, const MemoryUse &use);

} // namespace shardc
