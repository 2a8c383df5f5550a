// SPDX-License-Identifier: Apache-2.0
// Writes ops for the importer: folds at once, shares equal small constants, keeps the first
// mistake.
#pragma once

#include "ir/graph/Builder.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace shardc {

/// After a mistake every function returns null and does nothing, so that a rule may chain calls and
/// need not look until it reads a result's type. Null operands of the helpers mean "after a
/// mistake".
class Emitter {
public:
  explicit Emitter(Graph &graph) : graph_(graph), builder_(graph) {}
  Graph &graph() { return graph_; }
  /// Of the ops that follow, and of messages: the name of an ONNX node, say.
  void setPlace(llvm::StringRef place) { builder_.place = place.str(); }
  llvm::StringRef place() const { return builder_.place; }

  void fail(const llvm::Twine &message, const llvm::Twine &hint = ""); ///< "PLACE: message"
  bool failed() const { return failure_.has_value(); }
  llvm::Error takeError(); ///< success if there was no mistake; forgets it

  /// The first result.
  Value *emit(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {});
  Op *emitOp(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {});

  Value *constant(Tensor tensor);
  Value *scalar(DType dtype, double value) { return constant(Tensor::splat(dtype, {}, value)); }
  /// An i64; exact, which a double is not.
  Value *integer(int64_t value) { return constant(Tensor::of<int64_t>(DType::I64, {}, {value})); }
  Value *ints(llvm::ArrayRef<int64_t> values) { return constant(Tensor::ofInts(values)); }
  /// One value everywhere; a view of a scalar where it is large.
  Value *splat(Tensor scalar, llvm::ArrayRef<int64_t> dims);

  Value *cast(Value *a, DType to);
  Value *where(Value *condition, Value *a, Value *b) { return emit(kWhere, {condition, a, b}); }
  Value *reshape(Value *a, llvm::ArrayRef<int64_t> dims);
  Value *transpose(Value *a, llvm::ArrayRef<int64_t> perm); ///< a itself for the identity
  Value *expand(Value *a, llvm::ArrayRef<int64_t> dims);    ///< dims of a broadcast to `dims`
  Value *slice(Value *a, Ints starts, Ints sizes, Ints steps);
  /// [start, start + size) of one axis.
  Value *sliceAxis(Value *a, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
  Value *concat(llvm::ArrayRef<Value *> parts, int64_t axis);
  /// 0, 1 ... count - 1; a mistake where there are more than a range may have.
  Value *iota(DType dtype, int64_t count);
  /// bool[rows, columns]: `compare` of the column and the row + k: a triangle, a diagonal. An op, not a constant, where it is large.
  Value *diagonal(const OpDef &compare, int64_t rows, int64_t columns, double k);
  Value *reduce(const OpDef &def, Value *a, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Value *matmul(Value *a, Value *b, bool transposeA = false, bool transposeB = false);
  /// Over any axis; the ops themselves know the last one only. `def`: softmax or log_softmax.
  Value *softmax(const OpDef &def, Value *a, int64_t axis);

private:
  struct Failure {
    std::string message, hint;
  };
  Value *shareConstant(Op *op);

  Graph &graph_;
  Builder builder_;
  std::optional<Failure> failure_;
  llvm::StringMap<Value *> constants_; ///< small ones, by type and bytes
};

} // namespace shardc
