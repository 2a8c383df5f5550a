// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/DeadOps.h"
#include "ir/ops/OpDef.h"

namespace shardc {

llvm::DenseSet<const Value *> eraseDeadOps(Graph &graph) {
  llvm::DenseSet<const Value *> kept, params;
  for (auto &[name, value] : graph.outputs())
    kept.insert(value);
  for (auto it = graph.ops().rbegin(); it != graph.ops().rend();) {
    Op &op = *it++;
    bool used = op.def().effect;
    for (unsigned i = 0; i < op.numResults(); ++i)
      used |= op.result(i)->hasUses() || kept.contains(op.result(i));
    if (used)
      continue;
    if (op.is(kParam))
      params.insert(op.result());
    graph.erase(&op);
  }
  return params;
}

} // namespace shardc
