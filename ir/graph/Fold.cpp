// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Fold.h"
#include "ir/base/Error.h"
#include "ir/base/ScalarExpr.h"
#include "ir/ops/OpDef.h"

namespace shardc {

const Tensor *constantOf(const Value *value) {
  if (!value || !value->op()->is(kConstant))
    return nullptr;
  return &value->op()->attrs.getTensor("value");
}

static llvm::Expected<llvm::SmallVector<Tensor, 1>> evaluateOp(const Op &op, llvm::ArrayRef<const Tensor *> operands) {
  if (op.def().evaluate)
    return op.def().evaluate(op, operands);
  llvm::SmallVector<DType> dtypes;
  for (const Tensor *t : operands)
    dtypes.push_back(t->dtype());
  llvm::SmallVector<NamedNumber> numbers;
  for (auto &[name, value] : op.attrs)
    if (auto *i = std::get_if<int64_t>(&value))
      numbers.push_back({name, double(*i)});
    else if (auto *f = std::get_if<double>(&value))
      numbers.push_back({name, *f});
  const Type &type = op.result()->type();
  auto program = parseScalarExpr(op.def().scalar, dtypes, type.dtype, numbers);
  if (!program)
    return program.takeError();
  return llvm::SmallVector<Tensor, 1>{evaluate(*program, operands, type.dims)};
}

llvm::Expected<Op *> foldConstant(Op *op) {
  const OpDef &def = op->def();
  if (op->numOperands() == 0 || op->numResults() != 1 || def.effect || op->is(kDropout) ||
      (!def.evaluate && !def.scalar))
    return op;
  llvm::SmallVector<const Tensor *> operands;
  int64_t bytesIn = 0, bytesOut = op->result()->type().numBytes();
  for (Value *value : op->operands()) {
    operands.push_back(constantOf(value));
    if (value && !operands.back())
      return op;
    bytesIn += value ? value->type().numBytes() : 0;
  }
  bool big = op->is(kExpand) ? op->result()->type().numElements() > kFoldExpandElements : bytesOut > kFoldBytes;
  if (big && bytesOut > bytesIn)
    return op;

  auto results = evaluateOp(*op, operands);
  if (!results)
    return userError((op->place.empty() ? op->mnemonic() : llvm::StringRef(op->place)) + ": " +
                     llvm::toString(results.takeError()));
  Graph &graph = op->graph();
  auto next = std::next(op->getIterator());
  Tensor &tensor = results->front();
  Type type(tensor.dtype(), tensor.dims());
  std::string name = op->result()->name().str(), place = op->place, layer = op->layer;
  Phase phase = op->phase;
  graph.erase(op);
  Op *made = graph.create(kConstant, {}, {{"value", std::move(tensor)}}, {type},
                          next == graph.ops().end() ? nullptr : &*next, name);
  made->place = place;
  made->layer = layer;
  made->phase = phase;
  return made;
}

} // namespace shardc
