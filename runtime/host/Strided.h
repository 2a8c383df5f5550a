// SPDX-License-Identifier: Apache-2.0
// Walking arrays with any strides in row-major order of their dims.
#pragma once

#include "runtime/host/Kernel.h"
#include <cstring>

namespace shardc::host {

/// Merges neighbouring dims that all of `strides` step through as one, and drops dims of size 1.
/// At least one dim remains. Requires: as many strides as dims in each.
void collapse(Dims &dims, llvm::MutableArrayRef<Dims> strides);

/// One array seen as a row-major sequence of its elements.
struct Walk {
  unsigned rank = 1;
  int64_t dims[kMaxRank] = {1}, strides[kMaxRank] = {1};
  static Walk of(Dims dims, Dims strides);
  bool contiguous() const { return rank == 1 && (strides[0] == 1 || dims[0] == 1); }
  bool constant() const { return rank == 1 && strides[0] == 0; }
  /// Where element `position` of the sequence lies, in elements from the array's start.
  int64_t offset(int64_t position) const {
    if (rank == 1)
      return position * strides[0];
    int64_t at = 0;
    for (int d = int(rank) - 1; d >= 0; position /= dims[d], --d)
      at += position % dims[d] * strides[d];
    return at;
  }

  /// Calls run(offset, stride, n, position) for pieces with one stride that together are the
  /// elements [begin, end) of the sequence; offset is in elements from the array's start.
  template <typename Run> void forRuns(int64_t begin, int64_t end, Run run) const {
    if (begin >= end)
      return;
    int64_t at[kMaxRank], offset = 0, left = begin;
    for (int d = int(rank) - 1; d >= 0; --d) {
      at[d] = left % dims[d];
      left /= dims[d];
      offset += at[d] * strides[d];
    }
    const int last = int(rank) - 1;
    for (int64_t position = begin;;) {
      int64_t n = std::min(dims[last] - at[last], end - position);
      run(offset, strides[last], n, position);
      position += n;
      if (position >= end)
        return;
      offset += (n - dims[last]) * strides[last];
      at[last] = 0;
      for (int d = last - 1; d >= 0; --d) {
        offset += strides[d];
        if (++at[d] < dims[d])
          break;
        offset -= at[d] * strides[d];
        at[d] = 0;
      }
    }
  }
};

/// Elements [begin, end) of the sequence, laid end to end at `to`.
template <typename T>
void readRuns(const Walk &walk, const T *from, int64_t begin, int64_t end, T *to) {
  walk.forRuns(begin, end, [&](int64_t offset, int64_t stride, int64_t n, int64_t position) {
    const T *source = from + offset;
    T *target = to + (position - begin);
    if (stride == 1)
      std::memcpy(target, source, n * sizeof(T));
    else if (stride == 0)
      std::fill_n(target, n, *source);
    else
      for (int64_t i = 0; i < n; ++i)
        target[i] = source[i * stride];
  });
}

/// The inverse.
template <typename T>
void writeRuns(const Walk &walk, T *to, int64_t begin, int64_t end, const T *from) {
  walk.forRuns(begin, end, [&](int64_t offset, int64_t stride, int64_t n, int64_t position) {
    T *target = to + offset;
    const T *source = from + (position - begin);
    for (int64_t i = 0; i < n; ++i)
      target[i * stride] = source[i];
  });
}

/// Calls f with a null pointer of an unsigned type as wide as `dtype`: for what only moves data.
template <typename F> auto withBits(DType dtype, F f) {
  switch (byteSize(dtype)) {
  case 1:
    return f((uint8_t *)nullptr);
  case 2:
    return f((uint16_t *)nullptr);
  case 4:
    return f((uint32_t *)nullptr);
  default:
    return f((uint64_t *)nullptr);
  }
}

} // namespace shardc::host
