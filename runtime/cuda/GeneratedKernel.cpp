// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/GeneratedKernel.h"

namespace shardc::cuda {

llvm::Error GeneratedKernel::launch(cudaStream_t stream) {
  cudaLaunchAttribute early = earlyLaunch();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks_);
  config.blockDim = dim3(threads_);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  void *arguments[] = {words_.data()};
  return check(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel_), arguments), "cudaLaunchKernelExC");
}

} // namespace shardc::cuda
