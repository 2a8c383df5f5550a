// SPDX-License-Identifier: Apache-2.0
// The memory of one space: allocated once, given back at the end.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace shardc {

/// Zero-filled and page-aligned. Pages that are never touched cost nothing.
class Arena {
public:
  /// Error: the system has not that much; `place` names the space.
  static llvm::Expected<Arena> create(uint64_t bytes, llvm::StringRef place);
  Arena(Arena &&other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();
  char *data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

private:
  Arena(char *data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  char *data_;
  uint64_t bytes_;
};

} // namespace shardc
