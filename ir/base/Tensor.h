// SPDX-License-Identifier: Apache-2.0
// Dense row-major arrays in host memory: constants of a graph, operands of folding.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>

namespace shardc {

using Dims = llvm::SmallVector<int64_t, 4>;

/// Product of dims; 1 for rank 0. Requires: the product does not overflow (see `checkedNumElements`).
int64_t numElements(llvm::ArrayRef<int64_t> dims);

/// Product of dims, or nullopt if a dim is negative or there are more than 2^44 elements, which no memory holds (and their bytes would overflow).
std::optional<int64_t> checkedNumElements(llvm::ArrayRef<int64_t> dims);

/// Row-major strides in elements.
Dims rowMajorStrides(llvm::ArrayRef<int64_t> dims);

/// "8x128x512", "scalar" for rank 0.
std::string formatDims(llvm::ArrayRef<int64_t> dims);

/// A dense row-major array; the bytes are shared between copies and immutable once shared.
class Tensor {
public:
  Tensor() = default;
  /// Zero-filled.
  Tensor(DType dtype, llvm::ArrayRef<int64_t> dims);
  /// Views `bytes` that `owner` keeps alive (a mapped file, say).
  Tensor(DType dtype, llvm::ArrayRef<int64_t> dims, std::shared_ptr<const void> owner,
         const void *bytes);
  template <typename T> static Tensor of(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<T> values) {
    Tensor t(dtype, dims);
    std::copy(values.begin(), values.end(), t.mutableData<T>());
    return t;
  }
  static Tensor ofInts(llvm::ArrayRef<int64_t> values) {
    return of<int64_t>(DType::I64, {int64_t(values.size())}, values);
  }
  /// One value of any dtype, converted.
  static Tensor splat(DType dtype, llvm::ArrayRef<int64_t> dims, double value);

  DType dtype() const { return dtype_; }
  llvm::ArrayRef<int64_t> dims() const { return dims_; }
  int64_t rank() const { return dims_.size(); }
  int64_t numElements() const { return shardc::numElements(dims_); }
  int64_t numBytes() const { return numElements() * byteSize(dtype_); }
  const void *bytes() const { return data_; }
  template <typename T> const T *data() const { return static_cast<const T *>(data_); }
  /// Requires: sole owner (just made).
  template <typename T> T *mutableData() { return static_cast<T *>(const_cast<void *>(data_)); }
  /// Element i as double / int64, whatever the dtype (16-bit floats too).
  double asDouble(int64_t i) const;
  int64_t asInt(int64_t i) const;
  /// Every element as int64.
  llvm::SmallVector<int64_t> ints() const;
  /// Same bytes, other dims. Requires: equal number of elements.
  Tensor reshaped(llvm::ArrayRef<int64_t> dims) const;
  bool operator==(const Tensor &o) const; ///< dtype, dims and bytes

private:
  DType dtype_ = DType::F32;
  Dims dims_;
  std::shared_ptr<const void> owner_;
  const void *data_ = nullptr;
};

} // namespace shardc
