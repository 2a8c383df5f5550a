// SPDX-License-Identifier: Apache-2.0
// Device memory that the commands of one stream of a plan use while they run, one after another.
#pragma once

#include "llvm/Support/Error.h"
#include <cstdint>

namespace shardc::cuda {

/// Grows while kernels are bound, never after that. A request may move it: kernels keep the reference, and ask for
/// data() when they launch.
class Scratch {
public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch();

  /// At least `bytes` from now on; what it held is lost. Error: the device has no more memory.
  llvm::Error reserve(int64_t bytes);
  /// Aligned to 256 bytes; null before the first request.
  void *data() const { return data_; }
  template <typename T> T *as() const { return static_cast<T *>(data_); }
  int64_t bytes() const { return bytes_; }

private:
  void *data_ = nullptr;
  int64_t bytes_ = 0;
};

} // namespace shardc::cuda
