// SPDX-License-Identifier: Apache-2.0
// Executes a plan on CUDA devices. Includes no header of the toolkit.
#pragma once

#include "runtime/Executor.h"

namespace shardc::cuda {

/// shardc/tuning.txt in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache). "" if there is none.
std::string defaultTuningFile();

struct DeviceOptions {
  int ordinal = 0;
  /// How ranks talk: by NCCL, each on a device of its own, or as threads of this process that share one.
  bool nccl = false;
  /// Programs become CUDA graphs after their first run. Ranks that share a device have none.
  bool graphs = true;
  /// Where the fastest algorithms of products are looked up and kept ("": nowhere, they are the library's first answers). With
  /// the same file a run gives the same bits; what it lacks is timed and added to it, by rank 0, whose path counts.
  std::string tuning = defaultTuningFile();
  /// Is told what of createExecutor is done, in a few words; null: nobody is.
  void (*onProgress)(llvm::StringRef done) = nullptr;
};

/// One rank; the calling thread uses it. Errors, beside those of every executor: no device (see whyNoDevice), kernels that it lacks,
/// all by name; memory that does not fit (exit code 3). All ranks call it, and none returns before all are ready.
/// Where communication has ended under a running program, it can be neither used nor destroyed in good order: its memory is given
/// up, and the process should end by _exit.
llvm::Expected<std::unique_ptr<Executor>> createExecutor(const plan::Plan &plan, const ExecutorOptions &options,
                                                         const DeviceOptions &deviceOptions);

/// "" where there is a device; else why not, in a few words.
std::string whyNoDevice();
int deviceCount();
/// Of the calling thread's device: "NVIDIA H200", and all its memory.
std::string deviceName();
uint64_t deviceBytes();

/// Bytes of the calling thread's device that are taken, by any process, beyond `arenas`: what this process's plans have.
uint64_t takenBeyond(uint64_t arenas);

} // namespace shardc::cuda
