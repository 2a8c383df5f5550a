// SPDX-License-Identifier: Apache-2.0
// Host memory that a device reads and writes by itself.
#pragma once

#include "runtime/cuda/Device.h"
#include <cstring>
#include <utility>

namespace shardc::cuda {

class Pinned {
public:
  Pinned() = default;
  Pinned(Pinned &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  ~Pinned() {
    if (data_)
      cudaFreeHost(data_);
  }
  /// Zero at first.
  llvm::Error allocate(uint64_t bytes) {
    if (llvm::Error e = check(cudaHostAlloc(&data_, bytes ? bytes : 1, cudaHostAllocDefault), "cudaHostAlloc"))
      return e;
    std::memset(data_, 0, bytes);
    return llvm::Error::success();
  }
  void *data() const { return data_; }
  template <typename T> T *as() const { return static_cast<T *>(data_); }

private:
  void *data_ = nullptr;
};

} // namespace shardc::cuda
