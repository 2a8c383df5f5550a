// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Kernel.h"

namespace shardc::cuda {

#define SHARDC_KERNEL(NAME, BIND) BoundKernel BIND(const host::Binding &, Device &);
#include "runtime/cuda/Kernels.def"
#undef SHARDC_KERNEL

Bind findKernel(llvm::StringRef name) {
#define SHARDC_KERNEL(NAME, BIND)                                                                  \
  if (name == NAME)                                                                                \
    return BIND;
#include "runtime/cuda/Kernels.def"
#undef SHARDC_KERNEL
  return nullptr;
}

llvm::ArrayRef<llvm::StringRef> kernelNames() {
  static constexpr llvm::StringRef kNames[] = {
#define SHARDC_KERNEL(NAME, BIND) NAME,
#include "runtime/cuda/Kernels.def"
#undef SHARDC_KERNEL
  };
  return kNames;
}

} // namespace shardc::cuda
