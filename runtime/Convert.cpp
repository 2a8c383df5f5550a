// SPDX-License-Identifier: Apache-2.0
#include "runtime/Convert.h"
#include "ir/base/Half.h"
#include <cassert>
#include <cstring>

namespace shardc {
namespace {

float widen(uint16_t bits, DType type) {
  return type == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits);
}

template <typename From, typename To, typename F>
void each(const void *from, void *to, int64_t count, F convert) {
  const char *source = static_cast<const char *>(from);
  To *target = static_cast<To *>(to);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, source + i * sizeof(From), sizeof(From)); // files promise no alignment
    target[i] = convert(value);
  }
}

template <typename To> void toFloat(const void *from, DType fromType, void *to, int64_t count) {
  if (fromType == DType::F32)
    each<float, To>(from, to, count, [](float v) { return To(v); });
  else if (fromType == DType::F64)
    each<double, To>(from, to, count, [](double v) { return To(v); });
  else
    each<uint16_t, To>(from, to, count, [=](uint16_t v) { return To(widen(v, fromType)); });
}

} // namespace

bool isConvertible(DType from, DType to) {
  if (from == to || (from == DType::I32 && to == DType::I64))
    return true;
  return isFloat(from) && (to == DType::F32 || to == DType::F64);
}

void convertElements(const void *from, DType fromType, void *to, DType toType, int64_t count) {
  assert(isConvertible(fromType, toType));
  if (fromType == toType)
    std::memcpy(to, from, count * byteSize(toType));
  else if (toType == DType::I64)
    each<int32_t, int64_t>(from, to, count, [](int32_t v) { return int64_t(v); });
  else if (toType == DType::F32)
    toFloat<float>(from, fromType, to, count);
  else
    toFloat<double>(from, fromType, to, count);
}

void roundElements(const float *from, void *to, DType toType, int64_t count) {
  uint16_t *target = static_cast<uint16_t *>(to);
  for (int64_t i = 0; i < count; ++i)
    target[i] = toType == DType::F16 ? floatToHalf(from[i]) : floatToBFloat(from[i]);
}

} // namespace shardc
