// SPDX-License-Identifier: Apache-2.0
#include "frontend/Emitter.h"
#include "ir/base/Error.h"
#include "ir/graph/Fold.h"

namespace shardc {

/// Larger constants are not compared with each other.
static constexpr int64_t kShareBytes = 1024;

void Emitter::fail(const llvm::Twine &message, const llvm::Twine &hint) {
  if (!failure_)
    failure_ = Failure{builder_.place + ": " + message.str(), hint.str()};
}

llvm::Error Emitter::takeError() {
  if (!failure_)
    return llvm::Error::success();
  Failure failure = std::move(*failure_);
  failure_.reset();
  return userError(failure.message, failure.hint);
}

Op *Emitter::emitOp(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs) {
  if (failed())
    return nullptr;
  auto keep = [&](llvm::Error error) {
    llvm::handleAllErrors(
        std::move(error),
        [&](const UserError &e) {
          failure_ = Failure{e.text().str(), e.hint().str()};
        },
        [&](const llvm::ErrorInfoBase &e) {
          failure_ = Failure{builder_.place + ": " + e.message(), ""};
        });
    return nullptr;
  };
  llvm::Expected<Op *> op = builder_.create(def, operands, std::move(attrs));
  if (!op)
    return keep(op.takeError());
  // Sizes first: folding allocates what the dims say.
  for (unsigned i = 0; i < (*op)->numResults(); ++i)
    if (!checkedNumElements((*op)->result(i)->type().dims)) {
      fail("the result has too many elements: got " + formatDims((*op)->result(i)->type().dims));
      graph_.erase(*op);
      return nullptr;
    }
  op = foldConstant(*op);
  if (!op)
    return keep(op.takeError());
  return *op;
}

Value *Emitter::emit(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs) {
  Op *op = emitOp(def, operands, std::move(attrs));
  return op ? shareConstant(op) : nullptr;
}

Value *Emitter::shareConstant(Op *op) {
  Value *value = op->result();
  if (!op->is(kConstant) || value->type().numBytes() > kShareBytes)
    return value;
  const Tensor &tensor = op->attrs.getTensor("value");
  std::string key = toString(value->type()) + ":";
  key.append(static_cast<const char *>(tensor.bytes()), tensor.numBytes());
  auto [entry, isNew] = constants_.try_emplace(key, value);
  if (!isNew)
    graph_.erase(op);
  return entry->second;
}

Value *Emitter::constant(Tensor tensor) {
  return emit(kConstant, {}, {{"value", std::move(tensor)}});
}

Value *Emitter::splat(Tensor scalar, llvm::ArrayRef<int64_t> dims) {
  return expand(constant(scalar.reshaped({})), dims);
}

Value *Emitter::cast(Value *a, DType to) {
  if (!a || a->type().dtype == to)
    return a;
  return emit(kCast, {a}, {{"to", toString(to).str()}});
}

Value *Emitter::reshape(Value *a, llvm::ArrayRef<int64_t> dims) {
  if (!a || llvm::ArrayRef(a->type().dims) == dims)
    return a;
  return emit(kReshape, {a}, {{"dims", Ints(dims)}});
}

Value *Emitter::transpose(Value *a, llvm::ArrayRef<int64_t> perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i)
    identity &= perm[i] == int64_t(i);
  return !a || identity ? a : emit(kTranspose, {a}, {{"perm", Ints(perm)}});
}

Value *Emitter::expand(Value *a, llvm::ArrayRef<int64_t> dims) {
  if (!a || llvm::ArrayRef(a->type().dims) == dims)
    return a;
  return emit(kExpand, {a}, {{"dims", Ints(dims)}});
}

Value *Emitter::slice(Value *a, Ints starts, Ints sizes, Ints steps) {
  if (!a)
    return a;
  bool whole = llvm::ArrayRef(a->type().dims) == llvm::ArrayRef(sizes);
  for (size_t i = 0; i < steps.size(); ++i)
    whole &= steps[i] == 1 || sizes[i] <= 1;
  if (whole)
    return a;
  return emit(
      kSlice, {a},
      {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}});
}

Value *Emitter::sliceAxis(Value *a, int64_t axis, int64_t start, int64_t size, int64_t step) {
  if (!a)
    return a;
  Ints starts(a->type().rank(), 0), sizes(a->type().dims), steps(a->type().rank(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  steps[axis] = step;
  return slice(a, starts, sizes, steps);
}

Value *Emitter::concat(llvm::ArrayRef<Value *> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : emit(kConcat, parts, {{"axis", axis}});
}

Value *Emitter::iota(DType dtype, int64_t count) {
  return emit(kRange, {scalar(dtype, 0), scalar(dtype, double(count)), scalar(dtype, 1)});
}

Value *Emitter::diagonal(const OpDef &compare, int64_t rows, int64_t columns, double k) {
  Value *row = emit(kAdd, {reshape(iota(DType::F64, rows), {rows, 1}), scalar(DType::F64, k)});
  return emit(compare, {reshape(iota(DType::F64, columns), {1, columns}), row});
}

Value *Emitter::reduce(const OpDef &def, Value *a, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  if (axes.empty())
    return a;
  return emit(def, {a}, {{"axes", Ints(axes)}, {"keep_dims", int64_t(keepDims)}});
}

Value *Emitter::matmul(Value *a, Value *b, bool transposeA, bool transposeB) {
  return emit(kMatMul, {a, b},
              {{"transpose_a", int64_t(transposeA)}, {"transpose_b", int64_t(transposeB)}});
}

Value *Emitter::softmax(const OpDef &def, Value *a, int64_t axis) {
  if (!a)
    return a;
  Ints swap;
  for (int64_t i = 0; i < a->type().rank(); ++i)
    swap.push_back(i);
  if (axis < int64_t(swap.size()))
    std::swap(swap[axis], swap.back());
  return transpose(emit(def, {transpose(a, swap)}), swap);
}

} // namespace shardc
