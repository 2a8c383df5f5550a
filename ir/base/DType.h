// SPDX-License-Identifier: Apache-2.0
// Element types of values, buffers and files.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace shardc {

/// The numbers are part of the plan format: append only.
enum class DType : uint8_t {
  F32 = 0,
  F64 = 1,
  F16 = 2,
  BF16 = 3,
  I32 = 4,
  I64 = 5,
  U8 = 6,
  Bool = 7
};
constexpr unsigned kNumDTypes = 8;

/// Bytes of one element. A Bool is one byte, 0 or 1.
constexpr int64_t byteSize(DType type) {
  constexpr int64_t kBytes[kNumDTypes] = {4, 8, 2, 2, 4, 8, 1, 1};
  return kBytes[unsigned(type)];
}

constexpr bool isFloat(DType type) { return type <= DType::BF16; }
constexpr bool isHalf(DType type) { return type == DType::F16 || type == DType::BF16; }
/// What sums and statistics of such values are kept in: f32 for 16-bit floats, else the type itself.
constexpr DType wideType(DType type) { return isHalf(type) ? DType::F32 : type; }

/// "f32", "i64", "bool" ...: the spelling of both text forms.
llvm::StringRef toString(DType type);
std::optional<DType> parseDType(llvm::StringRef text);

} // namespace shardc
