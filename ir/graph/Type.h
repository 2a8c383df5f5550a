// SPDX-License-Identifier: Apache-2.0
// The type of a value: element type and static dims.
#pragma once

#include "ir/base/Tensor.h"

namespace shardc {

struct Type {
  DType dtype = DType::F32;
  Dims dims;

  Type() = default;
  Type(DType dtype, llvm::ArrayRef<int64_t> dims) : dtype(dtype), dims(dims.begin(), dims.end()) {}
  int64_t rank() const { return dims.size(); }
  int64_t numElements() const { return shardc::numElements(dims); }
  int64_t numBytes() const { return numElements() * byteSize(dtype); }
  bool isFloat() const { return shardc::isFloat(dtype); }
  /// dims[i], i counted from the end if negative.
  int64_t dim(int64_t i) const { return dims[i < 0 ? i + rank() : i]; }
  bool operator==(const Type &o) const { return dtype == o.dtype && dims == o.dims; }
};

using Types = llvm::SmallVector<Type, 2>;

/// "f32[8,128,512]", "i64[]" for a scalar.
std::string toString(const Type &type);

} // namespace shardc
