// SPDX-License-Identifier: Apache-2.0
#include "frontend/SameValues.h"
#include <algorithm>
#include <cstring>

namespace shardc {
namespace {

/// Blocks keep the strided side of the comparison in cache.
template <typename T>
bool equalTransposed(const char *a, const char *b, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 32;
  auto load = [](const char *p, int64_t i) {
    T value;
    std::memcpy(&value, p + i * sizeof(T), sizeof(T));
    return value;
  };
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock)
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock)
      for (int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i)
        for (int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j)
          if (load(a, i * columns + j) != load(b, j * rows + i))
            return false;
  return true;
}

} // namespace

bool sameValues(const TensorSource &a, const TensorSource &b, bool transposed) {
  if (a.dtype != b.dtype || !a.data || !b.data || a.length != b.length)
    return false;
  if (!transposed)
    return a.dims == b.dims && (a.data == b.data || !std::memcmp(a.data, b.data, a.length));
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.dims[0] != b.dims[1] || a.dims[1] != b.dims[0])
    return false;
  switch (byteSize(a.dtype)) {
  case 8:
    return equalTransposed<uint64_t>(a.data, b.data, a.dims[0], a.dims[1]);
  case 4:
    return equalTransposed<uint32_t>(a.data, b.data, a.dims[0], a.dims[1]);
  case 2:
    return equalTransposed<uint16_t>(a.data, b.data, a.dims[0], a.dims[1]);
  default:
    return equalTransposed<uint8_t>(a.data, b.data, a.dims[0], a.dims[1]);
  }
}

bool isConstant(const TensorSource &a) {
  uint64_t size = byteSize(a.dtype);
  // Equal to itself shifted by one element.
  return a.data && (a.length <= size || !std::memcmp(a.data, a.data + size, a.length - size));
}

std::string matrixKey(const TensorSource &a) {
  auto [low, high] = std::minmax(a.dims[0], a.dims[1]);
  std::string key =
      std::to_string(low) + "x" + std::to_string(high) + "x" + std::to_string(int(a.dtype)) + ":";
  uint64_t size = byteSize(a.dtype);
  if (low > 0)
    for (int64_t n = 0; n < 4; ++n) // the diagonal stays where it is
      key.append(a.data + size * uint64_t(n * (low - 1) / 3 * (a.dims[1] + 1)), size);
  return key;
}

} // namespace shardc
