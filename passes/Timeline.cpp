// SPDX-License-Identifier: Apache-2.0
#include "passes/Timeline.h"
#include "ir/plan/Wire.h"

namespace shardc {

Cost costOf(const Op &op) {
  if (isSource(op) || op.def().view)
    return {};
  if (op.def().cost)
    return op.def().cost(op);
  Cost cost;
  for (const Value *operand : op.operands())
    cost.bytes += operand ? double(operand->type().numBytes()) : 0;
  for (unsigned i = 0; i < op.numResults(); ++i)
    cost.bytes += double(op.result(i)->type().numBytes());
  return cost;
}

double microseconds(const Op &op, const Machine &machine) {
  if (isSource(op) || op.def().view || op.is(kPack))
    return 0;
  DType dtype = op.numResults() ? op.result()->type().dtype : DType::F32;
  if (op.attrs.getInt("wide", 0)) // sums of 16-bit operands, left in f32
    dtype = op.operand(0)->type().dtype;
  if (op.def().collective == Collective::Start) {
    const Value *whole = op.is(kAllGatherStart) ? op.result() : op.operand(0);
    uint64_t sent = wireBytes(op.mnemonic(), uint64_t(op.attrs.getInt("ranks", 1)), uint64_t(whole->type().numBytes()));
    return machine.collectiveMicroseconds(double(sent), dtype);
  }
  return machine.microseconds(costOf(op), dtype, op.phase);
}

OpTimes::OpTimes(const Graph &graph, const Machine &machine) : slowdown_(machine.overlapSlowdown) {
  times_.reserve(unsigned(graph.numOps()));
  for (const Op &op : graph.ops())
    times_[&op] = microseconds(op, machine);
}

Span Clock::run(const Op &op) {
  double time = times_.of(op);
  // What is on the link now keeps it busy until link_.
  double beside = std::min(time * times_.slowdown(), std::max(0.0, link_ - compute_));
  Span span{compute_, compute_ + beside + (time - beside / times_.slowdown())};
  if (op.def().collective == Collective::Start) {
    span.start = std::max(compute_, link_);
    link_ = span.end = span.start + time;
    arrivals_[&op] = link_;
    return span;
  }
  if (op.def().collective == Collective::Done)
    if (const Op *start = op.operand(0)->op())
      span.end = std::max(compute_, arrival(*start));
  compute_ = span.end;
  return span;
}

Timeline simulate(const Order &order, const OpTimes &times) {
  Timeline timeline;
  timeline.spans.reserve(order.size());
  Clock clock(times);
  for (const Op *op : order) {
    timeline.spans.push_back(clock.run(*op));
    if (op->def().collective == Collective::None)
      timeline.compute += times.of(*op);
  }
  timeline.total = std::max(clock.now(), clock.linkFree());
  return timeline;
}

Exposed exposedMs(const Graph &graph, const Machine &machine) {
  OpTimes times(graph, machine);
  // A gather that nothing in the program reads (parameters after their update) is not needed anywhere: it stays.
  auto isNeeded = [](const Op &done) { return done.operand(0)->op()->is(kAllGatherStart) && done.result()->hasUses(); };
  Order order, late;
  for (const Op &constOp : graph.ops()) {
    Op *op = const_cast<Op *>(&constOp);
    order.push_back(op);
    if (op->is(kAllGatherStart) && llvm::any_of(op->result()->uses(), [&](Use use) { return isNeeded(*use.op); }))
      continue;
    if (op->is(kCollectiveDone) && isNeeded(*op))
      late.push_back(op->operand(0)->op());
    late.push_back(op);
  }
  Timeline timeline = simulate(order, times);
  return {timeline.exposed() / 1e3, simulate(late, times).exposed() / 1e3, timeline.total / 1e3};
}

} // namespace shardc
