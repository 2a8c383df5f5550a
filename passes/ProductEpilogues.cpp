// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

/// What follows a product and can be part of it: from the product to `end`, values of one use each.
struct Epilogue {
  Value *end = nullptr, *bias = nullptr, *c = nullptr;
  bool relu = false;
};

/// The value that was widened, or itself.
Value *beforeWidening(Value *v) {
  Value *from = v->op()->is(kCast) ? v->op()->operand(0) : v;
  return isHalf(from->type().dtype) && v->type().dtype == DType::F32 ? from : v;
}

/// The [n] numbers that a sum with a product of n columns adds to each row; null if that is not what `v` is.
Value *columnsOf(Value *v, int64_t n, DType dtype) {
  if (v->type().rank() == 0 || v->type().dim(-1) != n || v->type().numElements() != n)
    return nullptr;
  v = beforeWidening(v);
  while (v->op()->is(kReshape) && v->type().rank() != 1)
    v = beforeWidening(v->op()->operand(0));
  return v->type() == Type(dtype, {n}) ? v : nullptr;
}

/// Is it memory of its own, in row-major order?
bool isDense(const Value *v) {
  while (v->op()->is(kReshape))
    v = v->op()->operand(0);
  return !v->op()->def().view;
}

class Matcher {
public:
  Matcher(Op &product) : product_(product), type_(product.result()->type()) {}

  /// The longest epilogue whose end may be the product's result.
  Epilogue run() {
    Epilogue best, now;
    for (Value *v = product_.result(); (v = next(v, now));) {
      now.end = v;
      if ((now.c || now.bias || now.relu) && fits(now))
        best = now;
    }
    return best;
  }

private:
  /// The result of the only user of `v`, if the product can do that too.
  Value *next(Value *v, Epilogue &now) const {
    if (!v->hasOneUse() || product_.graph().isOutput(v))
      return nullptr;
    auto [user, index] = v->uses().front();
    if (user->is(kCast))
      return beforeWidening(user->result()) == v || user->result()->type().dtype == type_.dtype ? user->result() : nullptr;
    if (user->is(kRelu) && !now.relu) {
      now.relu = true;
      return user->result();
    }
    return user->is(kAdd) && !now.relu && addend(user->operand(1 - index), user->result()->type(), now) ? user->result() : nullptr;
  }

  bool addend(Value *v, const Type &sum, Epilogue &now) const {
    if (sum.dims != type_.dims)
      return false;
    if (Value *columns = columnsOf(v, type_.dim(-1), product_.operand(0)->type().dtype); columns && !now.bias) {
      now.bias = columns;
      return true;
    }
    if (now.c || v->type().dims != type_.dims || !isDense(beforeWidening(v)))
      return false;
    now.c = v;
    return true;
  }

  /// Do the types agree? A sum that stays in f32 is worth its bytes only for the sake of an f32 summand.
  bool fits(Epilogue &now) const {
    DType end = now.end->type().dtype;
    Value *narrow = now.c ? beforeWidening(now.c) : nullptr;
    if (end != type_.dtype)
      return isHalf(type_.dtype) && end == DType::F32 && narrow && narrow->type().dtype == DType::F32;
    return !narrow || narrow->type().dtype == end || now.c->type().dtype == end;
  }

  Op &product_;
  const Type &type_;
};

/// The product with that epilogue, where the epilogue ends. What it stands for is dead then.
void rebuild(Op &product, const Epilogue &epilogue) {
  Graph &graph = product.graph();
  Builder b(graph, epilogue.end->op());
  b.stampLike(product);
  DType dtype = epilogue.end->type().dtype;
  Value *c = epilogue.c && epilogue.c->type().dtype != dtype ? beforeWidening(epilogue.c) : epilogue.c;
  Attrs attrs = product.attrs;
  if (dtype != product.result()->type().dtype)
    attrs.set("wide", int64_t(1));
  if (epilogue.relu)
    attrs.set("act", std::string("relu"));
  Value *made = b.make(kMatMul, {product.operand(0), product.operand(1), c, epilogue.bias}, std::move(attrs));
  made->setBatchMajor(epilogue.end->batchMajor());
  std::string name = epilogue.end->name().str();
  graph.replaceAllUses(epilogue.end, made);
  graph.rename(epilogue.end, "gone");
  graph.rename(made, name);
}

} // namespace

llvm::Error productEpilogues(Graph &graph, const CompileOptions &) {
  for (Op &op : graph.ops())
    if (op.is(kMatMul) && op.numOperands() == 2 && !op.attrs.has("act"))
      if (Epilogue epilogue = Matcher(op).run(); epilogue.end)
        rebuild(op, epilogue);
  return llvm::Error::success();
}

} // namespace shardc
