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

using BoundKernel = llvm::Expected<std::unique_ptr<Kernel>>;
/// Checks operands and attributes completely (host::Checks serves here too: a plan is untrusted input). Pointers of the binding are
/// device memory. Sums and order of work are fixed: the same plan on the same device gives the same bits.
using Bind = BoundKernel (*)(const host::Binding &, Device &);

/// By command kernel name; null if there is none. The list is runtime/cuda/Kernels.def, in the form of runtime/host/Kernels.def.
Bind findKernel(llvm::StringRef name);
llvm::ArrayRef<llvm::StringRef> kernelNames();

} // namespace shardc::cuda
