// SPDX-License-Identifier: Apache-2.0
// (sum, count) travel as one array of two: added up over micro-steps, then over ranks, so that neither depends on how the batch was cut.
#include "ir/graph/Builder.h"
#include "passes/zero/State.h"

namespace shardc::zero {

void sumLoss(Graph &graph, const CompileOptions &options) {
  bool more = options.microStep == MicroStep::Middle || options.microStep == MicroStep::Last;
  bool last = options.microStep == MicroStep::Only || options.microStep == MicroStep::Last;
  // As soon as both are there: the backward pass hides the sum over ranks.
  Value *sum = graph.output("loss_sum"), *counted = graph.output("loss_count");
  unsigned missing = 2 - (sum->op() == counted->op());
  auto at = graph.ops().begin();
  for (; at != graph.ops().end() && (missing || at->phase != Phase::Backward); ++at)
    missing -= &*at == sum->op() || &*at == counted->op();
  Builder b(graph, at == graph.ops().end() ? nullptr : &*at);
  b.phase = at != graph.ops().begin() && std::prev(at)->phase == Phase::Backward ? Phase::Backward : Phase::Forward; // chunks of the loss
  b.place = "loss";
  Value *count = b.cast(counted, sum->type().dtype);
  Value *loss = b.make(kConcat, {b.reshape(sum, {1}), b.reshape(count, {1})}, {{"axis", int64_t(0)}});
  if (more)
    loss = b.add(readState(b, Role::Loss, loss->type()), loss);
  if (last && options.ranks > 1)
    loss = collective(b, kAllReduceStart, {loss}, options, "loss.total");
  graph.addOutput(stateName(Role::Loss), loss);
  for (auto [name, index] : {std::pair("loss_sum", kLossSum), std::pair("loss_count", kLossCount)})
    if (last)
      graph.setOutput(name, b.reshape(b.slice(loss, {index}, {1}), {}));
    else
      graph.eraseOutput(name);
}

} // namespace shardc::zero
