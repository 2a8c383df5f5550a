// SPDX-License-Identifier: Apache-2.0
// Creates ops with inferred types; what the importer, gradients and passes write with.
#pragma once

#include "ir/ops/OpDef.h"

namespace shardc {

/// Inserts before `before_` (null: at the end). Ops get the builder's place, layer and phase.
/// The named functions assert on a type error: they are for compiler code that knows its types;
/// `create` returns the error and is for what users wrote.
class Builder {
public:
  explicit Builder(Graph &graph, Op *before = nullptr) : graph_(graph), before_(before) {}
  Graph &graph() { return graph_; }
  Op *before() const { return before_; }
  /// Takes place, layer and phase from `op`.
  void stampLike(const Op &op);

  std::string place, layer;
  Phase phase = Phase::Forward;
  /// Evaluate at once what has only constant operands (see the brief in passes/README.md).
  bool fold = false;

  /// Checks operand count, infers result types. The error starts with the place.
  llvm::Expected<Op *> create(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {},
                              llvm::StringRef name = "");
  Value *make(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs = {}, llvm::StringRef name = "");

  Value *constant(Tensor tensor, llvm::StringRef name = "");
  /// A rank-0 constant.
  Value *scalar(DType dtype, double value) { return constant(Tensor::splat(dtype, {}, value)); }

  Value *add(Value *a, Value *b);
  Value *sub(Value *a, Value *b);
  Value *mul(Value *a, Value *b);
  Value *div(Value *a, Value *b);
  Value *neg(Value *a);
  /// a * factor, in a's dtype.
  Value *scale(Value *a, double factor);
  Value *cast(Value *a, DType to); ///< a itself if it has that type
  Value *where(Value *condition, Value *a, Value *b);
  Value *sum(Value *a, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Value *reshape(Value *a, llvm::ArrayRef<int64_t> dims); ///< a itself if it has these dims
  Value *transpose(Value *a, llvm::ArrayRef<int64_t> perm);
  Value *expand(Value *a, llvm::ArrayRef<int64_t> dims);
  /// Half-open ranges per dim, steps may be negative (ends then may be -1 for "before 0").
  Value *slice(Value *a, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> steps = {});
  Value *matmul(Value *a, Value *b, bool transposeA = false, bool transposeB = false);
  /// Sums a broadcast value's gradient back to `dims`: sums over the dims that were broadcast.
  Value *sumTo(Value *a, llvm::ArrayRef<int64_t> dims);

private:
  Graph &graph_;
  Op *before_;
};

/// What one op's gradient rule sees: its operands, its results, the gradients of the results. Of pointwise ops on 16-bit floats it sees all
/// of them widened to f32, so that a gradient is rounded once, whatever steps its rule takes.
class GradContext : public Builder {
public:
  GradContext(Graph &graph, Op &op, llvm::ArrayRef<Value *> resultGrads, llvm::ArrayRef<bool> needed);
  Op &op() { return op_; }
  const Attrs &attrs() const { return op_.attrs; }
  Value *in(unsigned i) { return seen(op_.operand(i)); }
  Value *out(unsigned i = 0) { return seen(op_.result(i)); }
  /// Gradient of result i; null if nothing that reaches the loss uses it.
  Value *dOut(unsigned i = 0) { return seen(resultGrads_[i]); }
  /// Is the gradient of operand i wanted? A rule may skip the others.
  bool needs(unsigned i) const { return i < needed_.size() && needed_[i]; }
  /// Says the gradient of operand i (same dims as the operand, or broadcast ones: it is summed to fit).
  void setGrad(unsigned i, Value *gradient);
  Value *grad(unsigned i) const { return grads_[i]; }

private:
  Value *seen(Value *value);
  Op &op_;
  llvm::SmallVector<std::pair<Value *, Value *>, 4> widened_; ///< of which value, by which cast
  llvm::SmallVector<Value *, 4> resultGrads_;
  llvm::SmallVector<bool, 4> needed_;
  llvm::SmallVector<Value *, 4> grads_;
};

} // namespace shardc
