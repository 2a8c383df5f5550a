// SPDX-License-Identifier: Apache-2.0
// Where the values of a stored tensor lie: in the model file, in an external one, or nowhere.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace shardc {

struct TensorSource {
  /// Absent: shape only (no data in the file, or the external file does not exist).
  /// Zeros: all zero by definition; no bytes anywhere.
  enum class State : uint8_t { Inline, External, Absent, Zeros };

  State state = State::Absent;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> dims;
  /// Little-endian elements at file[offset, offset + length). "" when the file holds the values in
  /// another form (varint fields): then only `data` has them. An absent external tensor keeps the
  /// place where it should be.
  std::string file;
  uint64_t offset = 0, length = 0;
  /// `length` bytes, mapped or owned by the model, unaligned; null when Absent or Zeros.
  const char *data = nullptr;

  int64_t numElements() const {
    int64_t n = 1;
    for (int64_t d : dims)
      n *= d;
    return n;
  }
};

} // namespace shardc
