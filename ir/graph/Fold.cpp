// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Fold.h"
#include "ir/base/Error.h"
#include "ir/ops/Reference.h"

namespace shardc {

const Tensor *constantOf(const Value *value) {
  if (!value || !value->op()->is(kConstant))
    return nullptr;
  return &value->op()->attrs.getTensor("value");
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
