// SPDX-License-Identifier: Apache-2.0
#include "passes/Order.h"

namespace shardc {

bool isSource(const Op &op) { return op.is(kInput) || op.is(kParam) || op.is(kConstant) || op.is(kScalars); }

static bool isPureView(const Op &op) { return op.def().view && op.def().collective == Collective::None; }

bool isFree(const Op &op) { return isSource(op) || isPureView(op); }

Value *rootOf(Value *value) {
  while (isPureView(*value->op()))
    value = value->op()->operand(0);
  return value;
}

void forEachReader(const Value *value, llvm::function_ref<void(Op *)> visit) {
  for (Use use : value->uses()) {
    if (isPureView(*use.op))
      forEachReader(use.op->result(), visit);
    else
      visit(use.op);
  }
}

Order orderOf(Graph &graph) {
  Order order;
  order.reserve(graph.numOps());
  for (Op &op : graph.ops())
    order.push_back(&op);
  return order;
}

void applyOrder(Graph &graph, const Order &order) {
  assert(order.size() == graph.numOps());
  for (Op *op : order)
    graph.moveBefore(op, nullptr);
  // Who moved up belongs to the phase of what follows, who moved down to that of what precedes.
  auto movesDown = [](const Op &op) { return isFree(op) || op.is(kPack) || op.def().collective != Collective::None; };
  Phase limit = Phase::Update;
  for (Op &op : llvm::reverse(graph.ops())) {
    op.phase = std::min(op.phase, limit);
    if (!movesDown(op))
      limit = op.phase;
  }
  Phase reached = Phase::Forward;
  for (Op &op : graph.ops()) {
    if (op.is(kConstant))
      continue;
    if (movesDown(op))
      op.phase = std::max(op.phase, reached);
    reached = std::max(reached, op.phase);
  }
}

void OrderBuilder::add(Op *op, Missing missing) {
  if (has(op))
    return;
  for (Value *operand : op->operands()) {
    if (!operand || has(operand->op()))
      continue;
    if (isFree(*operand->op()))
      add(operand->op(), missing);
    else
      missing(operand->op());
    assert(has(operand->op()));
  }
  // What was missing may have brought the op itself along.
  if (!there_.insert(op).second)
    return;
  order_.push_back(op);
}

void OrderBuilder::add(Op *op) {
  add(op, [](Op *) { assert(false && "an operand comes after its use"); });
}

} // namespace shardc
