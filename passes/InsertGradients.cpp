// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/Buckets.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

/// One run of reverse mode. A value's gradient is the sum of what its users contribute.
class Reverse {
public:
  Reverse(Graph &graph, Value *loss) : graph_(graph), loss_(loss) {}

  llvm::Error run() {
    findActive();
    Builder seed(graph_);
    seed.phase = Phase::Backward;
    gradients_[loss_] = seed.scalar(loss_->type().dtype, 1);
    llvm::SmallVector<Op *> forward;
    for (Op &op : graph_.ops())
      if (op.phase == Phase::Forward)
        forward.push_back(&op);
    for (Op *op : llvm::reverse(forward))
      if (llvm::Error error = visit(*op))
        return error;
    for (const Parameter &p : graph_.parameters)
      if (Value *gradient = p.value && p.trainable ? gradients_.lookup(p.value) : nullptr)
        graph_.addOutput((kGradientPrefix + p.name).str(), gradient);
    return llvm::Error::success();
  }

private:
  /// A value is active if it is a float, depends on a trainable parameter, and the loss depends on it.
  void findActive() {
    llvm::DenseSet<const Value *> dependent;
    for (const Parameter &p : graph_.parameters)
      if (p.value && p.trainable)
        dependent.insert(p.value);
    for (const Op &op : graph_.ops())
      if (llvm::any_of(op.operands(), [&](Value *v) { return dependent.contains(v); }))
        for (unsigned i = 0; i < op.numResults(); ++i)
          if (op.result(i)->type().isFloat())
            dependent.insert(op.result(i));
    llvm::DenseSet<const Value *> needed{loss_};
    for (const Op &op : llvm::reverse(graph_.ops())) {
      bool reaches = false;
      for (unsigned i = 0; i < op.numResults(); ++i)
        reaches |= needed.contains(op.result(i));
      if (reaches)
        needed.insert(op.operands().begin(), op.operands().end());
    }
    for (const Value *v : dependent)
      if (needed.contains(v))
        active_.insert(v);
  }

  llvm::Error visit(Op &op) {
    llvm::SmallVector<Value *, 4> resultGrads;
    for (unsigned i = 0; i < op.numResults(); ++i)
      resultGrads.push_back(gradients_.lookup(op.result(i)));
    if (llvm::none_of(resultGrads, [](Value *v) { return v; }))
      return llvm::Error::success();
    llvm::SmallVector<bool, 4> needed;
    for (Value *v : op.operands())
      needed.push_back(v && active_.contains(v));
    if (llvm::none_of(needed, [](bool yes) { return yes; }))
      return llvm::Error::success();
    if (!op.def().gradient)
      return userError(op.place + ": op " + op.mnemonic() + " has no gradient: " +
                           (op.def().notDifferentiable ? op.def().notDifferentiable : "not implemented"),
                       "freeze the parameters before it with --freeze, or choose another loss");
    GradContext context(graph_, op, resultGrads, needed);
    op.def().gradient(context);
    for (unsigned i = 0; i < op.numOperands(); ++i)
      if (Value *gradient = context.grad(i)) {
        Value *&sum = gradients_[op.operand(i)];
        sum = sum ? context.add(sum, gradient) : gradient;
      }
    return llvm::Error::success();
  }

  Graph &graph_;
  Value *loss_;
  llvm::DenseSet<const Value *> active_;
  llvm::DenseMap<const Value *, Value *> gradients_;
};

} // namespace

llvm::Error insertGradients(Graph &graph, const CompileOptions &) {
  Value *loss = graph.output("loss_sum");
  if (!loss)
    return userError("insert-gradients: the graph has no output 'loss_sum'", "give --loss");
  if (llvm::Error error = Reverse(graph, loss).run())
    return error;
  bool any = llvm::any_of(graph.outputs(), [](auto &o) { return llvm::StringRef(o.first).starts_with(kGradientPrefix); });
  graph.level = Level::Step;
  if (!any)
    return userError("insert-gradients: no trainable parameter reaches the loss", "check --loss, --logits and --freeze");
  return llvm::Error::success();
}

} // namespace shardc
