// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Scratch.h"
#include "runtime/cuda/Device.h"

namespace shardc::cuda {

Scratch::~Scratch() { cudaFree(data_); }

llvm::Error Scratch::reserve(int64_t bytes) {
  if (bytes <= bytes_)
    return llvm::Error::success();
  // Kernels that use the old memory may have been launched already: cudaFree waits for them.
  if (llvm::Error error = check(cudaFree(data_), "cudaFree"))
    return error;
  data_ = nullptr, bytes_ = 0;
  if (llvm::Error error = check(cudaMalloc(&data_, bytes), "cudaMalloc for scratch memory of kernels"))
    return error;
  bytes_ = bytes;
  return llvm::Error::success();
}

} // namespace shardc::cuda
