// SPDX-License-Identifier: Apache-2.0
// Helpers of `evaluate` functions. Composite ops are evaluated by plain loops in double: slow,
// obvious, and what the kernels are tested against.
#pragma once

#include "ir/ops/OpDef.h"
#include <vector>

namespace shardc {

struct Indices;
struct ScalarProgram;

using Tensors = llvm::SmallVector<Tensor, 1>;
using TensorArgs = llvm::ArrayRef<const Tensor *>;

/// Elements as double.
std::vector<double> toDoubles(const Tensor &tensor);
/// An operand of a product: rounded to TF32 where attribute tf32 = 1 says so.
std::vector<double> productOperand(const Op &op, const Tensor &tensor);
/// A tensor of `values`, rounded to the dtype.
Tensor fromDoubles(DType dtype, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<double> values);

/// A copy that may be written.
Tensor copyOf(const Tensor &tensor);
/// A dense copy of the strided array that starts `offset` elements into `tensor`.
Tensor gatherStrided(const Tensor &tensor, int64_t offset, llvm::ArrayRef<int64_t> dims,
                     llvm::ArrayRef<int64_t> strides);
/// Strides that read an array of `dims` as if it had the (broadcast) dims `to`.
Dims broadcastStrides(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> to);

/// A tensor of indices, for the functions of ir/base/Movement.h.
Indices indicesOf(const Tensor &tensor);
/// The error for an index at `position` in `indices` that is outside [-size, size).
llvm::Error indexError(const Tensor &indices, int64_t position, llvm::StringRef wanted);

/// An error if the program draws random numbers: it has no value before the step runs.
llvm::Error refuseRandom(const ScalarProgram &program);

/// Evaluates `op`, by `evaluate` or `scalar`, if it has one of them. Dropout is refused.
llvm::Expected<Tensors> evaluateOp(const Op &op, TensorArgs operands);

} // namespace shardc
