// SPDX-License-Identifier: Apache-2.0
#include "runtime/ElementSource.h"
#include "runtime/Convert.h"
#include <algorithm>
#include <cstring>
#include <memory>

namespace shardc {

/// In blocks that stay in the cache.
template <int64_t kBytes>
static void transpose(const ElementSource &source, int64_t first, int64_t count, char *to) {
  constexpr int64_t kBlock = 32;
  const int64_t columns = source.columns, last = first + count;
  for (int64_t r0 = first / columns; r0 * columns < last; r0 += kBlock)
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
      for (int64_t r = r0; r < r0 + kBlock && r * columns < last; ++r) {
        int64_t begin = std::max(r * columns + c0, first);
        int64_t end = std::min(r * columns + std::min(c0 + kBlock, columns), last);
        for (int64_t i = begin; i < end; ++i)
          std::memcpy(to + (i - first) * kBytes, source.data + ((i - r * columns) * source.rows + r) * kBytes, kBytes);
      }
}

static void transposeAs(const ElementSource &source, int64_t first, int64_t count, char *to) {
  switch (byteSize(source.dtype)) {
  case 1:
    return transpose<1>(source, first, count, to);
  case 2:
    return transpose<2>(source, first, count, to);
  case 4:
    return transpose<4>(source, first, count, to);
  default:
    return transpose<8>(source, first, count, to);
  }
}

void copyElements(const ElementSource &source, int64_t first, int64_t count, void *to, DType toType) {
  char *target = static_cast<char *>(to);
  if (source.rows == 0)
    return convertElements(source.data + first * byteSize(source.dtype), source.dtype, to, toType, count);
  if (source.dtype == toType)
    return transposeAs(source, first, count, target);
  constexpr int64_t kChunk = 1 << 20;
  std::unique_ptr<char[]> chunk(new char[std::min(count, kChunk) * byteSize(source.dtype)]);
  for (int64_t done = 0; done < count; done += kChunk) {
    int64_t n = std::min(kChunk, count - done);
    transposeAs(source, first + done, n, chunk.get());
    convertElements(chunk.get(), source.dtype, target + done * byteSize(toType), toType, n);
  }
}

} // namespace shardc
