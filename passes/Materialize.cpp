// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "passes/Layout.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

class Materializer {
public:
  explicit Materializer(Graph &graph) : graph_(graph) {}

  void run() {
    for (auto it = graph_.ops().begin(); it != graph_.ops().end();) {
      Op &op = *it++;
      if (op.def().view) {
        layoutView(op);
        continue;
      }
      for (unsigned i = 0; i < op.numOperands(); ++i)
        if (Value *v = op.operand(i))
          if (!layoutFits(layoutOf(v), v->type().dims, allowedLayouts(op.def(), i)))
            op.setOperand(i, copyOf(v, op));
    }
  }

private:
  Layout layoutOf(Value *v) {
    auto found = layouts_.find(v);
    return found != layouts_.end() ? found->second : ownLayout(v);
  }

  void layoutView(Op &op) {
    std::optional<Layout> layout = viewLayout(op, layoutOf(op.operand(0)));
    if (!layout) {
      op.setOperand(0, copyOf(op.operand(0), op));
      layout = viewLayout(op, ownLayout(op.operand(0)));
      assert(layout && "every view of row-major memory has strides");
    }
    layouts_[op.result()] = *layout;
  }

  /// One copy serves all later users in its phase.
  Value *copyOf(Value *v, Op &before) {
    Value *&copy = copies_[{v, unsigned(before.phase)}];
    if (!copy) {
      Builder b(graph_, &before);
      b.stampLike(before);
      copy = b.make(kCopy, {v});
      copy->setBatchMajor(v->batchMajor());
    }
    return copy;
  }

  Graph &graph_;
  llvm::DenseMap<Value *, Layout> layouts_;
  llvm::DenseMap<std::pair<Value *, unsigned>, Value *> copies_;
};

} // namespace

llvm::Error materialize(Graph &graph, const CompileOptions &) {
  Materializer(graph).run();
  return llvm::Error::success();
}

} // namespace shardc
