// SPDX-License-Identifier: Apache-2.0
// One GPU as one rank uses it: its handles, its compiled kernels, its fault record.
#pragma once

#include "llvm/Support/Error.h"
#include "runtime/cuda/FaultRecord.h"
#include "runtime/cuda/Scratch.h"
#include <cstdint>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardc::cuda {

class DeviceCommunicator;
class Tuner;

/// Every thread that calls CUDA for it must have called cudaSetDevice(ordinal()) before; `create` does so for its own.
class Device {
public:
  /// Errors: no driver, no such device, a device that kernels were not built for.
  static llvm::Expected<std::unique_ptr<Device>> create(int ordinal);
  /// "" where `create` of device 0 can succeed; else why not, in a few words.
  static std::string whyNone();
  virtual ~Device() = default;

  int ordinal() const { return ordinal_; }
  int multiprocessors() const { return multiprocessors_; }
  llvm::StringRef name() const { return name_; } ///< "NVIDIA H200"
  cublasLtHandle_t blas() const { return blas_; }
  FaultRecord *fault() const { return fault_; } ///< device memory
  const float *one() const { return one_; }     ///< 1, in device memory
  /// Of stream `stream` of a plan (Command.stream): its commands share it, for they run one after another.
  Scratch &scratch(unsigned stream) { return scratch_[stream]; }

  /// The ranks that run a plan together; null: one rank, or not yet told. It outlives the kernels that are bound to it.
  DeviceCommunicator *communicator() const { return communicator_; }
  void join(DeviceCommunicator *communicator) { communicator_ = communicator; }

  /// What products that are bound now are told to; null: they keep the library's first answers.
  Tuner *tuner() const { return tuner_; }
  void tuneBy(Tuner *tuner) { tuner_ = tuner; }

  /// A function of CUDA C++ source by NVRTC, for this device: cached in memory by source, and on disk under its hash. `name` is
  /// extern "C". The returned handle lives as long as the device. (cudaKernel_t: launched by cudaLaunchKernelExC.)
  virtual llvm::Expected<cudaKernel_t> compile(llvm::StringRef source, llvm::StringRef name) = 0;
  /// Makes `compile` quick for these: they are compiled side by side, by the host's threads. What is wrong is left for `compile` to
  /// say. How many were on no disk.
  virtual unsigned compileAhead(llvm::ArrayRef<std::string>) { return 0; }

  /// A number for FaultRecord::site: "PLACE: WHAT out of range: got ..." is what the user reads. Called when binding.
  int faultSite(llvm::StringRef place, llvm::StringRef what = "index");
  /// "PLACE: WHAT out of range: got V, wanted LOW to HIGH - 1". Requires: raised.
  std::string message(const FaultRecord &record) const;

protected:
  int ordinal_ = 0, multiprocessors_ = 0;
  std::string name_;
  cublasLtHandle_t blas_ = nullptr;
  FaultRecord *fault_ = nullptr;
  float *one_ = nullptr;

private:
  struct Site {
    std::string place, what;
  };
  std::vector<Site> sites_;
  std::map<unsigned, Scratch> scratch_;
  DeviceCommunicator *communicator_ = nullptr;
  Tuner *tuner_ = nullptr;
};

/// success, or "CALL: what the driver says".
llvm::Error check(cudaError_t code, const char *call);
llvm::Error check(cublasStatus_t code, const char *call);

} // namespace shardc::cuda
