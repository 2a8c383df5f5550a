// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "passes/Passes.h"
#include "passes/raise/Match.h"
#include "passes/raise/Patterns.h"

namespace shardc {

/// gather(table, ids) of whole rows => embedding(table, ids)
bool raising::embedding(Op &root) {
  Value *table = root.operand(0);
  if (!root.is(kGather) || table->type().rank() != 2 || !table->type().isFloat() || root.attrs.getInt("axis") != 0)
    return false;
  Builder build(root.graph(), &root);
  build.stampLike(root);
  match::replace(root.result(), build.make(kEmbedding, {table, root.operand(1)}));
  return true;
}

llvm::Error raise(Graph &graph, const CompileOptions &) {
  constexpr bool (*kPatterns[])(Op &) = {raising::rmsNorm,  raising::layerNorm, raising::gelu,
                                         raising::geluTanh, raising::embedding, raising::attention};
  for (Op &op : graph.ops())
    for (auto pattern : kPatterns)
      if (pattern(op))
        break;
  return llvm::Error::success();
}

} // namespace shardc
