// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/OpDef.h"
#include "passes/Passes.h"

namespace shardc {

llvm::Error setDropout(Graph &graph, const CompileOptions &options) {
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    llvm::StringRef ratio = op.is(kDropout) ? "p" : op.is(kAttention) || op.is(kRelativeAttention) ? "dropout" : "";
    if (ratio.empty())
      continue;
    if (options.dropout && (op.is(kDropout) || op.attrs.getFloat(ratio, 0) != 0))
      op.attrs.set(ratio, *options.dropout);
    if (op.is(kDropout) && op.attrs.getFloat(ratio, 0) == 0) {
      graph.replaceAllUses(op.result(), op.operand(0));
      graph.erase(&op);
    }
  }
  return llvm::Error::success();
}

} // namespace shardc
