// SPDX-License-Identifier: Apache-2.0
// Reference functions that move data: what folding and the host kernels of the movement ops call.
//
// Arrays are raw memory. Dims and strides are in elements; where no strides are given the array is
// row-major. Sizes are right by contract (checked by `infer` and by the kernels' `bind`); indices are
// data and checked here: the functions that take some return the position of the first index that
// is out of range, or kAllInRange. A negative index counts from the end.
#pragma once

#include "ir/base/DType.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc {

constexpr int64_t kAllInRange = -1;

/// Row-major indices of type I32 or I64.
struct Indices {
  const void *data;
  DType dtype;
  int64_t count;
  int64_t operator[](int64_t i) const {
    return dtype == DType::I32 ? static_cast<const int32_t *>(data)[i]
                               : static_cast<const int64_t *>(data)[i];
  }
};

/// What happens where a scatter meets a value (and another update of the same place).
enum class Scatter : uint8_t { None, Add, Mul, Max, Min };
/// "none", "add" ...
std::optional<Scatter> parseScatter(llvm::StringRef text);

/// out[i] = in[i] for all i in dims. Strides may be 0 or negative (those of `out` not 0).
void stridedCopy(void *out, llvm::ArrayRef<int64_t> outStrides, const void *in,
                 llvm::ArrayRef<int64_t> inStrides, llvm::ArrayRef<int64_t> dims,
                 int64_t elementBytes);

/// One operand of `concat`: all operands have equal dims except along the axis.
struct ConcatPiece {
  const void *data;
  llvm::ArrayRef<int64_t> dims, strides;
};
void concat(void *out, llvm::ArrayRef<int64_t> outDims, int64_t axis,
            llvm::ArrayRef<ConcatPiece> pieces, int64_t elementBytes);

/// `out` of outDims holds `in` (strided) at `before`, and `value` (elementBytes long) elsewhere.
void pad(void *out, llvm::ArrayRef<int64_t> outDims, const void *in,
         llvm::ArrayRef<int64_t> inDims, llvm::ArrayRef<int64_t> inStrides,
         llvm::ArrayRef<int64_t> before, const void *value, int64_t elementBytes);

/// A row-major array seen around one axis: [outer, size, inner].
struct AxisView {
  int64_t outer, size, inner;
  AxisView(llvm::ArrayRef<int64_t> dims, int64_t axis);
};

/// out[outer, i, inner] = data[outer, indices[i], inner].
int64_t gather(void *out, const void *data, AxisView view, Indices indices, int64_t elementBytes);
/// The transpose of `gather`: out[outer, indices[i], inner] += dy[outer, i, inner], i ascending.
/// Requires: `out` holds what is added to (zeros). Float dtypes.
int64_t gatherGrad(void *out, const void *dy, AxisView outView, Indices indices, DType dtype);

/// out[i0..] = data[i0.., indices[i0..], ..]; no dim of the indices but the axis exceeds data's.
int64_t gatherElements(void *out, const void *data, llvm::ArrayRef<int64_t> dataDims,
                       Indices indices, llvm::ArrayRef<int64_t> indexDims, int64_t axis,
                       int64_t elementBytes);
/// out[i0.., indices[i0..], ..] (op)= updates[i0..], ascending. Requires: `out` holds the data.
int64_t scatterElements(void *out, llvm::ArrayRef<int64_t> outDims, Indices indices,
                        llvm::ArrayRef<int64_t> indexDims, const void *updates, int64_t axis,
                        Scatter reduction, DType dtype);

/// ONNX GatherND: the last dim of the indices holds coordinates into data after `batchDims`.
int64_t gatherNd(void *out, const void *data, llvm::ArrayRef<int64_t> dataDims, Indices indices,
                 llvm::ArrayRef<int64_t> indexDims, int64_t batchDims, int64_t elementBytes);
/// ONNX ScatterND, updates ascending. Requires: `out` holds the data.
int64_t scatterNd(void *out, llvm::ArrayRef<int64_t> outDims, Indices indices,
                  llvm::ArrayRef<int64_t> indexDims, const void *updates, Scatter reduction,
                  DType dtype);

/// Running sums along the axis. F32 adds in F32, and so on; 16-bit floats in F32.
void cumSum(void *out, const void *in, AxisView view, bool exclusive, bool reverse, DType dtype);

/// out[i] = start + i * delta, computed in the dtype (F16, BF16: in F32).
void range(void *out, int64_t count, double start, double delta, DType dtype);

} // namespace shardc
