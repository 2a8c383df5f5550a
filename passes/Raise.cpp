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
  Attrs attrs;
  if (root.attrs.has("padding"))
    attrs.set("padding", root.attrs.getInt("padding"));
  match::replace(root.result(), build.make(kEmbedding, {table, root.operand(1)}, std::move(attrs)));
  return true;
}

/// Tries one list of patterns, in order, at each op.
static void sweep(Graph &graph, llvm::ArrayRef<bool (*)(Op &)> patterns) {
  for (Op &op : graph.ops())
    for (auto pattern : patterns)
      if (pattern(op))
        break;
}

llvm::Error raise(Graph &graph, const CompileOptions &) {
  sweep(graph, {raising::layerNorm}); // first: its inner part is an rms_norm of x - mean
  sweep(graph, {raising::rmsNorm, raising::gelu, raising::geluTanh, raising::silu, raising::embedding, raising::attention});
  sweep(graph, {raising::guardedSoftmax}); // of what is no attention
  return llvm::Error::success();
}

} // namespace shardc
