// SPDX-License-Identifier: Apache-2.0
// Arrays seen as rows along their last dims, and dispatch over f32 and f64.
#pragma once

#include "runtime/host/Checks.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Strided.h"

namespace shardc::host {

/// Where each row starts. Rows are the last `rowRank` dims; the dims before them are walked.
struct Rows {
  Walk walk;
  int64_t count = 1, length = 1;
  static Rows of(const Array &a, size_t rowRank) {
    Rows rows;
    size_t outer = a.dims.size() - rowRank;
    Dims dims(a.dims.begin(), a.dims.begin() + outer);
    Dims strides(a.strides.begin(), a.strides.begin() + outer);
    rows.count = numElements(dims);
    rows.length = numElements(llvm::ArrayRef(a.dims).drop_front(outer));
    rows.walk = Walk::of(dims, strides);
    return rows;
  }
  /// Elements from the array's start to row r.
  int64_t operator[](int64_t r) const { return walk.offset(r); }
  /// Rows that are worth a thread.
  int64_t grain() const { return 1 + (1 << 13) / std::max<int64_t>(1, length); }
};

/// The kernel K<float> or K<double>. Requires: `dtype` is one of them.
template <template <typename> class K, typename... Args>
BoundKernel makeReal(DType dtype, Args &&...args) {
  if (dtype == DType::F32)
    return std::make_unique<K<float>>(args...);
  return std::make_unique<K<double>>(args...);
}

} // namespace shardc::host
