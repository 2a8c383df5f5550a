// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Kernel.h"

namespace shardc::cuda {

#define SHARDC_KERNEL(NAME, BIND) BoundKernel BIND(const host::Binding &, Device &);
#include "runtime/host/Kernels.def"
#undef SHARDC_KERNEL

Bind findKernel(llvm::StringRef name) {
#define SHARDC_KERNEL(NAME, BIND)                                                                  \
  if (name == NAME)                                                                                \
    return BIND;
#include "runtime/host/Kernels.def"
#undef SHARDC_KERNEL
  return nullptr;
}

llvm::Expected<KernelScratch> KernelScratch::of(const host::Binding &binding, Device &device, int64_t bytes) {
  KernelScratch scratch;
  if (bytes == 0)
    return scratch;
  if (binding.workspaceBytes >= bytes && reinterpret_cast<uintptr_t>(binding.workspace) % 256 == 0) {
    scratch.workspace_ = binding.workspace;
    return scratch;
  }
  Scratch &shared = device.scratch(binding.command->stream());
  if (llvm::Error error = shared.reserve(bytes))
    return error;
  scratch.shared_ = &shared;
  return scratch;
}

} // namespace shardc::cuda
