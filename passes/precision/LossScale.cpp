// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/LossScale.h"
#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "passes/zero/State.h"
#include <cmath>

namespace shardc::precision {

/// The most that the count can be: how many targets there are.
static double mostCounted(const Value *count) {
  const Op &op = *count->op();
  if (const Tensor *t = constantOf(count))
    return t->numElements() == 1 ? t->asDouble(0) : double(t->numElements());
  if (op.is(kCrossEntropy))
    return double(op.operand(1)->type().numElements());
  if (op.is(kReduceSum))
    return double(op.operand(0)->type().numElements());
  double most = 1;
  for (const Value *v : op.operands())
    if (v)
      most = std::max(most, mostCounted(v));
  return most;
}

Value *scaledSeed(Builder &b, const CompileOptions &options) {
  Graph &graph = b.graph();
  double targets = mostCounted(graph.output("loss_count")) * options.ranks;
  double unit = std::exp2(-std::ceil(std::log2(std::max(targets, 1.0))));
  graph.attrs.set("loss_unit", unit);
  Value *state = zero::readState(b, zero::Role::LossScale, zero::lossScaleType());
  Value *excess = b.reshape(b.slice(state, {zero::kScaleExcess}, {1}), {});
  Value *relative = b.add(excess, b.scalar(DType::F64, 1));
  Value *scale = b.scale(relative, kInitialLossScale * unit);
  graph.setOutput("gradient_scale", scale);
  return b.cast(scale, graph.output("loss_sum")->type().dtype);
}

double lossUnit(const Graph &graph) { return graph.attrs.getFloat("loss_unit"); }

} // namespace shardc::precision
