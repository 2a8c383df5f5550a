// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/OpDef.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/Passes.h"

namespace shardc {

llvm::Error dce(Graph &graph, const CompileOptions &) {
  llvm::DenseSet<const Value *> kept;
  for (auto &[name, value] : graph.outputs())
    kept.insert(value);
  for (auto it = graph.ops().rbegin(); it != graph.ops().rend();) {
    Op &op = *it++;
    bool used = op.def().effect;
    for (unsigned i = 0; i < op.numResults(); ++i)
      used |= op.result(i)->hasUses() || kept.contains(op.result(i));
    if (used)
      continue;
    for (Parameter &p : graph.parameters)
      if (op.is(kParam) && p.value == op.result())
        p.value = nullptr;
    graph.erase(&op);
  }
  return llvm::Error::success();
}

} // namespace shardc
