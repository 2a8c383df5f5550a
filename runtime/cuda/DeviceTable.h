// SPDX-License-Identifier: Apache-2.0
// A constant array in device memory, filled when a kernel is bound: lists too long for kernel parameters.
#pragma once

#include "runtime/cuda/Device.h"
#include "llvm/ADT/ArrayRef.h"
#include <utility>

namespace shardc::cuda {

template <typename T> class DeviceTable {
public:
  DeviceTable() = default;
  DeviceTable(DeviceTable &&other) : data_(std::exchange(other.data_, nullptr)) {}
  DeviceTable &operator=(DeviceTable &&other) {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceTable() { cudaFree(data_); }

  /// Not empty. Error: the device has no more memory.
  static llvm::Expected<DeviceTable> of(llvm::ArrayRef<T> values) {
    DeviceTable table;
    const size_t bytes = values.size() * sizeof(T);
    if (llvm::Error error = check(cudaMalloc(&table.data_, bytes), "cudaMalloc for a table"))
      return error;
    if (llvm::Error error =
            check(cudaMemcpy(table.data_, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy of a table"))
      return error;
    return table;
  }
  const T *data() const { return static_cast<const T *>(data_); }

private:
  void *data_ = nullptr;
};

} // namespace shardc::cuda
