// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/DeadOps.h"
#include "passes/Passes.h"

namespace shardc {

llvm::Error dce(Graph &graph, const CompileOptions &) {
  llvm::DenseSet<const Value *> gone = eraseDeadOps(graph);
  for (Parameter &p : graph.parameters)
    if (gone.contains(p.value))
      p.value = nullptr;
  return llvm::Error::success();
}

} // namespace shardc
