// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

bool isSplat(const Value *value, double wanted) {
  const Tensor *t = constantOf(value);
  if (!t || t->numElements() == 0)
    return false;
  for (int64_t i = 0, n = t->numElements(); i < n; ++i)
    if (t->asDouble(i) != wanted)
      return false;
  return true;
}

/// reshape(reshape(x)) => reshape(x);   reshape(x) of equal dims => x
Value *simplifyReshape(Op &op) {
  Value *x = op.operand(0);
  if (x->type().dims == op.result()->type().dims)
    return x;
  if (!x->op()->is(kReshape))
    return nullptr;
  Builder b(op.graph(), &op);
  b.stampLike(op);
  return b.reshape(x->op()->operand(0), op.result()->type().dims);
}

/// Does the transpose swap the last two dims and nothing else?
bool swapsLastTwo(const Ints &perm) {
  bool swap = perm.size() >= 2;
  for (int64_t i = 0, n = perm.size(); i < n; ++i)
    swap &= perm[i] == (i < n - 2 ? i : 2 * n - 3 - i);
  return swap;
}

/// A product as `like`, of other matrices.
Value *productLike(Op &like, Builder &b, Value *x, Value *y, bool transposeX, bool transposeY) {
  Attrs attrs{{"transpose_a", int64_t(transposeX)}, {"transpose_b", int64_t(transposeY)}};
  for (auto &[name, value] : like.attrs)
    if (!attrs.has(name))
      attrs.set(name, value);
  return b.make(kMatMul, {x, y, like.operand(2), like.operand(3)}, std::move(attrs));
}

/// transpose(transpose(x)) => transpose(x);   transpose(x) in the old order => x
/// transpose(a b) => b' a', if it swaps the last two dims only: a weight gradient in [out, in] needs no copy
Value *simplifyTranspose(Op &op) {
  Value *x = op.operand(0);
  const Ints &perm = op.attrs.getInts("perm");
  if (llvm::is_sorted(perm))
    return x;
  Builder b(op.graph(), &op);
  b.stampLike(op);
  if (x->op()->is(kTranspose)) {
    const Ints &inner = x->op()->attrs.getInts("perm");
    Ints both;
    for (int64_t p : perm)
      both.push_back(inner[p]);
    return b.transpose(x->op()->operand(0), both);
  }
  if (swapsLastTwo(perm) && x->op()->is(kMatMul) && x->hasOneUse() && x->op()->numOperands() == 2) {
    const Attrs &attrs = x->op()->attrs;
    return productLike(*x->op(), b, x->op()->operand(1), x->op()->operand(0), !attrs.getInt("transpose_b", 0),
                       !attrs.getInt("transpose_a", 0));
  }
  return nullptr;
}

/// a transpose(b) => a b' by a flag, so that the gradient of b is a product in b's own order
Value *simplifyMatMul(Op &op) {
  Value *operands[2] = {op.operand(0), op.operand(1)};
  bool transposed[2] = {bool(op.attrs.getInt("transpose_a", 0)), bool(op.attrs.getInt("transpose_b", 0))}, changed = false;
  for (int i : {0, 1})
    if (operands[i]->op()->is(kTranspose) && swapsLastTwo(operands[i]->op()->attrs.getInts("perm"))) {
      operands[i] = operands[i]->op()->operand(0);
      transposed[i] = !transposed[i];
      changed = true;
    }
  if (!changed)
    return nullptr;
  Builder b(op.graph(), &op);
  b.stampLike(op);
  return productLike(op, b, operands[0], operands[1], transposed[0], transposed[1]);
}

/// cast(cast(x)) => x, where a 16-bit float is widened and rounded again
Value *simplifyCast(Op &op) {
  Op *inner = op.operand(0)->op();
  bool back = inner->is(kCast) && isHalf(op.result()->type().dtype) && inner->result()->type().dtype == DType::F32 &&
              inner->operand(0)->type() == op.result()->type();
  return back ? inner->operand(0) : nullptr;
}

/// The value that may stand for the op's result, null if there is none simpler.
Value *simplifyOp(Op &op) {
  if (op.is(kReshape))
    return simplifyReshape(op);
  if (op.is(kTranspose))
    return simplifyTranspose(op);
  if (op.is(kMatMul))
    return simplifyMatMul(op);
  if (op.is(kCast))
    if (Value *x = simplifyCast(op))
      return x;
  Value *a = op.operand(0);
  bool sameType = a && op.numResults() == 1 && a->type() == op.result()->type();
  if (!sameType)
    return nullptr;
  if (op.is(kExpand) || op.is(kCast))
    return a;
  if ((op.is(kMul) || op.is(kDiv)) && isSplat(op.operand(1), 1))
    return a;
  if (op.is(kSub) && isSplat(op.operand(1), 0))
    return a;
  return nullptr;
}

} // namespace

llvm::Error simplify(Graph &graph, const CompileOptions &) {
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    Value *simpler = simplifyOp(op);
    if (!simpler)
      continue;
    if (op.result()->batchMajor())
      simpler->setBatchMajor(true);
    bool isNew = !simpler->hasUses() && !graph.isOutput(simpler);
    std::string name = op.result()->name().str();
    graph.replaceAllUses(op.result(), simpler);
    graph.erase(&op);
    if (isNew) // keeps the model's name
      graph.rename(simpler, name);
    if (it != graph.ops().begin() && &*std::prev(it) == simpler->op()) // what was made may simplify further
      it = simpler->op()->getIterator();
  }
  return llvm::Error::success();
}

} // namespace shardc
