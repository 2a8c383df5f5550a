// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "ir/base/Error.h"
#include "ir/graph/Fold.h"

namespace shardc {

void Builder::stampLike(const Op &op) {
  place = op.place;
  layer = op.layer;
  phase = op.phase;
}

/// Number of operands: wanted at least, at most (-1: any).
static std::pair<unsigned, int> arity(const OpDef &def) {
  unsigned least = 0;
  for (const char *name : def.operands) {
    char last = llvm::StringRef(name).back();
    if (last == '*')
      return {least, -1};
    least += last != '?';
  }
  return {least, int(def.operands.size())};
}

llvm::Expected<Op *> Builder::create(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs,
                                     llvm::StringRef name) {
  while (!operands.empty() && !operands.back())
    operands = operands.drop_back();
  std::string where = (place.empty() ? llvm::StringRef(name) : llvm::StringRef(place)).str();
  where += (where.empty() ? "" : "/") + std::string(def.mnemonic);
  auto [least, most] = arity(def);
  if (operands.size() < least || (most >= 0 && operands.size() > size_t(most)))
    return userError(where + ": number of operands: got " + llvm::Twine(operands.size()) + ", wanted " +
                     (most == int(least) ? "" : "at least ") + llvm::Twine(least));
  for (unsigned i = 0; i < operands.size(); ++i)
    if (!operands[i] && i < def.operands.size() && !llvm::StringRef(def.operands[i]).ends_with("?"))
      return userError(where + ": operand '" + def.operands[i] + "': got none, wanted a value");
  Op *op = graph_.create(def, operands, std::move(attrs), {}, before_, name);
  op->place = place;
  op->layer = layer;
  op->phase = phase;
  llvm::Expected<Types> types = def.infer(*op);
  if (!types) {
    graph_.erase(op);
    return userError(where + ": " + llvm::toString(types.takeError()));
  }
  graph_.setResults(op, *types, name);
  if (fold)
    return foldConstant(op);
  return op;
}

Value *Builder::make(const OpDef &def, llvm::ArrayRef<Value *> operands, Attrs attrs, llvm::StringRef name) {
  llvm::Expected<Op *> op = create(def, operands, std::move(attrs), name);
  if (!op)
    llvm::report_fatal_error(op.takeError());
  return (*op)->result();
}

Value *Builder::constant(Tensor tensor, llvm::StringRef name) {
  return make(kConstant, {}, {{"value", std::move(tensor)}}, name);
}

Value *Builder::add(Value *a, Value *b) { return make(kAdd, {a, b}); }
Value *Builder::sub(Value *a, Value *b) { return make(kSub, {a, b}); }
Value *Builder::mul(Value *a, Value *b) { return make(kMul, {a, b}); }
Value *Builder::div(Value *a, Value *b) { return make(kDiv, {a, b}); }
Value *Builder::neg(Value *a) { return make(kNeg, {a}); }
Value *Builder::scale(Value *a, double factor) {
  return factor == 1 ? a : mul(a, scalar(a->type().dtype, factor));
}
Value *Builder::cast(Value *a, DType to) {
  return a->type().dtype == to ? a : make(kCast, {a}, {{"to", toString(to).str()}});
}
Value *Builder::where(Value *condition, Value *a, Value *b) { return make(kWhere, {condition, a, b}); }
Value *Builder::sum(Value *a, llvm::ArrayRef<int64_t> axes, bool keepDims) {
  return axes.empty() ? a : make(kReduceSum, {a}, {{"axes", Ints(axes)}, {"keep_dims", int64_t(keepDims)}});
}
Value *Builder::reshape(Value *a, llvm::ArrayRef<int64_t> dims) {
  return llvm::ArrayRef(a->type().dims) == dims ? a : make(kReshape, {a}, {{"dims", Ints(dims)}});
}
Value *Builder::transpose(Value *a, llvm::ArrayRef<int64_t> perm) {
  return make(kTranspose, {a}, {{"perm", Ints(perm)}});
}
Value *Builder::expand(Value *a, llvm::ArrayRef<int64_t> dims) {
  return llvm::ArrayRef(a->type().dims) == dims ? a : make(kExpand, {a}, {{"dims", Ints(dims)}});
}
Value *Builder::slice(Value *a, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                      llvm::ArrayRef<int64_t> steps) {
  Ints ones(starts.size(), 1);
  return make(kSlice, {a}, {{"starts", Ints(starts)}, {"sizes", Ints(sizes)}, {"steps", steps.empty() ? ones : Ints(steps)}});
}
Value *Builder::matmul(Value *a, Value *b, bool transposeA, bool transposeB) {
  return make(kMatMul, {a, b}, {{"transpose_a", int64_t(transposeA)}, {"transpose_b", int64_t(transposeB)}});
}

Value *Builder::sumTo(Value *a, llvm::ArrayRef<int64_t> dims) {
  const Dims &from = a->type().dims;
  int64_t extra = int64_t(from.size()) - int64_t(dims.size());
  Ints axes;
  for (int64_t i = 0; i < int64_t(from.size()); ++i)
    if (i < extra || (dims[i - extra] == 1 && from[i] != 1))
      axes.push_back(i);
  return reshape(sum(a, axes, /*keepDims=*/true), dims);
}

GradContext::GradContext(Graph &graph, Op &op, llvm::ArrayRef<Value *> resultGrads, llvm::ArrayRef<bool> needed)
    : Builder(graph), op_(op), resultGrads_(resultGrads.begin(), resultGrads.end()),
      needed_(needed.begin(), needed.end()), grads_(op.numOperands(), nullptr) {
  stampLike(op);
  phase = Phase::Backward;
}

void GradContext::setGrad(unsigned i, Value *gradient) {
  if (!needs(i))
    return;
  assert(!grads_[i] && "gradient set twice");
  const Type &type = op_.operand(i)->type();
  auto *same = llvm::find_if(widened_, [&](auto &pair) { return pair.second == gradient; });
  if (same != widened_.end() && (type.dtype == DType::F32 || type.dtype == same->first->type().dtype))
    gradient = same->first; // of 16 bits as it came
  else if (op_.def().scalar && type.isFloat() && gradient->type().dtype != type.dtype)
    gradient = cast(gradient, type.dtype);
  grads_[i] = gradient->type().dims == type.dims ? gradient : sumTo(gradient, type.dims);
}

Value *GradContext::seen(Value *value) {
  if (!value || !op_.def().scalar || !isHalf(value->type().dtype))
    return value;
  for (auto [narrow, wide] : widened_)
    if (narrow == value)
      return wide;
  return widened_.emplace_back(value, cast(value, DType::F32)).second;
}

} // namespace shardc
