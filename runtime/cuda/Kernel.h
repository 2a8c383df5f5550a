// SPDX-License-Identifier: Apache-2.0
// A CUDA kernel: a command bound to device memory.
#pragma once

#include "runtime/cuda/Device.h"
#include "runtime/host/Kernel.h"

namespace shardc::cuda {

/// Enqueues what it prepared when it was bound: no allocation, no synchronisation, nothing that a graph capture refuses, the same
/// launches each time. Numbers that change between steps are read on the device (`Binding::scalars`).
class Kernel {
public:
  virtual ~Kernel() = default;
  virtual llvm::Error launch(cudaStream_t stream) = 0;
};

/// Scratch memory of a kernel: its command's workspace, or where that is too small (plans not written for devices) memory that the
/// commands of its stream share.
class KernelScratch {
public:
  /// 256-byte aligned. Error: the device has no more memory.
  static llvm::Expected<KernelScratch> of(const host::Binding &binding, Device &device, int64_t bytes);
  /// Null where 0 bytes were asked for.
  void *data() const { return shared_ ? shared_->data() : workspace_; }

private:
  void *workspace_ = nullptr;
  const Scratch *shared_ = nullptr; ///< it may move while others are bound
};

using BoundKernel = llvm::Expected<std::unique_ptr<Kernel>>;
/// Checks operands and attributes completely (host::Checks serves here too: a plan is untrusted input). Pointers of the binding are
/// device memory. Sums and order of work are fixed: the same plan on the same device gives the same bits.
using Bind = BoundKernel (*)(const host::Binding &, Device &);

/// By command kernel name; null if there is none. The list is that of the host, runtime/host/Kernels.def.
Bind findKernel(llvm::StringRef name);

} // namespace shardc::cuda
