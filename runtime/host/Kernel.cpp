// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Kernel.h"

namespace shardc::host {

#define SHARDC_KERNEL(NAME, BIND) BoundKernel BIND(const Binding &);
#include "runtime/host/Kernels.def"
#undef SHARDC_KERNEL

bool Array::contiguous() const {
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0)
      return true;
    if (dims[i] != 1 && strides[i] != expected)
      return false;
    expected *= dims[i];
  }
  return true;
}

Bind findKernel(llvm::StringRef name) {
#define SHARDC_KERNEL(NAME, BIND)                                                                  \
  if (name == NAME)                                                                                \
    return BIND;
#include "runtime/host/Kernels.def"
#undef SHARDC_KERNEL
  return nullptr;
}

llvm::ArrayRef<llvm::StringRef> kernelNames() {
  static constexpr llvm::StringRef kNames[] = {
#define SHARDC_KERNEL(NAME, BIND) NAME,
#include "runtime/host/Kernels.def"
#undef SHARDC_KERNEL
  };
  return kNames;
}

} // namespace shardc::host
