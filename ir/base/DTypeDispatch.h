// SPDX-License-Identifier: Apache-2.0
// From a DType to a C++ type that computes like it.
#pragma once

#include "ir/base/DType.h"
#include "ir/base/Half.h"

namespace shardc {

/// Stored in 16 bits, computed in float.
struct HalfValue {
  uint16_t bits;
  HalfValue() = default;
  HalfValue(float value) : bits(floatToHalf(value)) {}
  operator float() const { return halfToFloat(bits); }
};
struct BFloatValue {
  uint16_t bits;
  BFloatValue() = default;
  BFloatValue(float value) : bits(floatToBFloat(value)) {}
  operator float() const { return bfloatToFloat(bits); }
};

/// Computes in T where that is a C++ number, in float for the 16-bit ones.
template <typename T> struct ComputeType { using Type = T; };
template <> struct ComputeType<HalfValue> { using Type = float; };
template <> struct ComputeType<BFloatValue> { using Type = float; };

/// Calls `f.operator()<T>()` with the T of `dtype` (Bool: uint8_t).
template <typename F> auto withType(DType dtype, F f) {
  switch (dtype) {
  case DType::F32:
    return f.template operator()<float>();
  case DType::F64:
    return f.template operator()<double>();
  case DType::F16:
    return f.template operator()<HalfValue>();
  case DType::BF16:
    return f.template operator()<BFloatValue>();
  case DType::I32:
    return f.template operator()<int32_t>();
  case DType::I64:
    return f.template operator()<int64_t>();
  case DType::U8:
  case DType::Bool:
    break;
  }
  return f.template operator()<uint8_t>();
}

} // namespace shardc
