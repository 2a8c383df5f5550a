// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "passes/Accumulator.h"
#include "passes/AddWholes.h"
#include "passes/Passes.h"

namespace shardc {

std::optional<unsigned> accumulatorOf(const OpDef &def) {
  for (unsigned i = 0; i < def.operands.size(); ++i)
    if (llvm::StringRef name = def.operands[i]; name == "acc?" || name == "c?")
      return i;
  return std::nullopt;
}

/// Row-major, all of an array or whole rows of it?
static bool isDense(const Value *v) {
  while (v->op()->is(kReshape) || rowsOf(*v->op()))
    v = v->op()->operand(0);
  return !v->op()->def().view;
}

/// add(sum, op(...)) => op(..., acc=sum). A sum that others read too stays as it is, if the op can write elsewhere.
static bool absorb(Op &add, Value *sum, Value *term, const llvm::DenseMap<const Op *, unsigned> &position) {
  Op *op = term->op();
  std::optional<unsigned> acc = accumulatorOf(op->def());
  bool free = acc && !op->operand(*acc) && !op->attrs.has("act") && term->hasOneUse() && term->type() == sum->type() &&
              !add.graph().isOutput(term) && !add.graph().isOutput(sum);
  if (!free || sum->op()->is(kConstant) || sum->op()->is(kInput) || sum->op()->is(kParam) ||
      position.lookup(sum->op()) > position.lookup(op))
    return false;
  if (op->def().inPlaceRequired ? !sum->hasOneUse() || sum->op()->def().view : !isDense(sum))
    return false;
  add.setOperand(0, nullptr);
  add.setOperand(1, nullptr);
  while (op->numOperands() <= *acc)
    op->addOperand(nullptr);
  op->setOperand(*acc, sum);
  add.graph().replaceAllUses(add.result(), term);
  add.graph().erase(&add);
  return true;
}

/// Is it a term of a sum, or what the program leaves? To others f32 is only twice the bytes.
static bool isTerm(const Value *v) {
  return v->op()->graph().isOutput(v) || (v->hasUses() && llvm::all_of(v->uses(), [](const Use &use) {
           return use.op->is(kAdd) || (use.op->def().view && isTerm(use.op->result()));
         }));
}

/// Is `v` read by nothing but casts to f32 that are terms, through views or not? Fills in those and the views.
static bool onlyWidened(Value *v, llvm::SmallVectorImpl<Op *> &casts, llvm::SmallVectorImpl<Value *> &views) {
  views.push_back(v);
  return v->hasUses() && !v->op()->graph().isOutput(v) && llvm::all_of(v->uses(), [&](const Use &use) {
    if (use.op->def().view)
      return onlyWidened(use.op->result(), casts, views);
    casts.push_back(use.op);
    return use.op->is(kCast) && use.op->result()->type().dtype == DType::F32 && isTerm(use.op->result());
  });
}

/// cast(op(...)) to f32 => op(..., wide = 1): its sums are not rounded in between
static void keepWide(Op &op) {
  llvm::SmallVector<Op *, 4> casts;
  llvm::SmallVector<Value *, 4> views;
  if (!accumulatorOf(op.def()) || op.numResults() != 1 || op.phase != Phase::Backward || !isHalf(op.result()->type().dtype) ||
      !onlyWidened(op.result(), casts, views))
    return;
  op.attrs.set("wide", int64_t(1));
  for (Value *v : views)
    v->setType(Type(DType::F32, v->type().dims));
  for (Op *cast : casts) {
    Value *wide = cast->operand(0);
    cast->setOperand(0, nullptr);
    op.graph().replaceAllUses(cast->result(), wide);
    op.graph().erase(cast);
  }
}

llvm::Error accumulateInPlace(Graph &graph, const CompileOptions &) {
  llvm::SmallVector<Op *> sums;
  for (Op &op : graph.ops())
    if (accumulatorOf(op.def()))
      sums.push_back(&op);
  for (Op *op : sums)
    keepWide(*op);
  addWholes(graph);
  llvm::DenseMap<const Op *, unsigned> position;
  for (Op &op : graph.ops())
    position[&op] = position.size();
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    if (op.is(kAdd) && op.phase == Phase::Backward)
      absorb(op, op.operand(0), op.operand(1), position) || absorb(op, op.operand(1), op.operand(0), position);
  }
  return llvm::Error::success();
}

} // namespace shardc
