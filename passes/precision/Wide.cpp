// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/Wide.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::precision {
namespace {

constexpr int64_t kFewClasses = 16;

class Chooser {
public:
  Chooser(const Graph &graph, const llvm::DenseSet<const Value *> &dependent, bool products)
      : graph_(graph), dependent_(dependent), products_(products) {}

  WideChoice run() {
    chooseLoss();
    for (const Op &op : graph_.ops())
      if (op.is(kRmsNorm) || op.is(kLayerNorm))
        chooseSum(op.operand(0));
    return std::move(choice_);
  }

private:
  /// Logits of few classes cost nothing in f32, and rounding them is most of the error of a short loss.
  static bool isSmall(const Value *logits) {
    return logits->type().rank() > 0 && logits->type().dim(-1) <= kFewClasses;
  }
  bool readsWide(const Op &user, const Value *v) const {
    return choice_.ops.contains(&user) && (!user.is(kCrossEntropy) || isSmall(v));
  }

  /// Backwards from the loss through what only moves, combines or reduces, as long as it leads to nothing else.
  void chooseLoss() {
    llvm::DenseSet<const Value *> wanted;
    for (auto &[name, value] : graph_.outputs())
      if (name == "loss_sum" || name == "loss_count" || name == "correct")
        wanted.insert(value);
    for (const Op &op : llvm::reverse(graph_.ops())) {
      const bool product = op.is(kMatMul) && isSmall(op.result());
      bool passes = product || op.def().scalar || op.def().view || op.is(kReduceSum) || op.is(kReduceMax) ||
                    op.is(kReduceMin) || op.is(kReduceProd) || op.is(kSoftmax) || op.is(kLogSoftmax) ||
                    op.is(kGather) || op.is(kGatherElements) || op.is(kGatherNd) || op.is(kConcat) ||
                    op.is(kCrossEntropy);
      for (unsigned i = 0; passes && i < op.numResults(); ++i) {
        const Value *v = op.result(i);
        passes = (!graph_.isOutput(v) || wanted.contains(v)) &&
                 (v->hasUses() || wanted.contains(v) || op.numResults() > 1) &&
                 llvm::all_of(v->uses(), [&](const Use &use) { return readsWide(*use.op, v); });
      }
      if (!passes || !op.numResults() || !dependent_.contains(op.result()))
        continue;
      if (product)
        choice_.values.insert(op.result());
      else
        choice_.ops.insert(&op);
    }
  }

  /// A sum that a norm reads is the residual stream, or is on its way there: rounding it in every layer would
  /// be most of the error of a deep model. Down to what the sum consists of.
  void chooseSum(const Value *v) {
    const Op &op = *v->op();
    if (!(op.is(kAdd) || op.is(kSub) || op.is(kDropout)) || !dependent_.contains(v) ||
        v->type().dtype != DType::F32 || !choice_.values.insert(v).second)
      return;
    for (const Value *term : op.operands())
      if (term && dependent_.contains(term) && term->type().dims == v->type().dims)
        term->op()->is(kLayerNorm) || term->op()->is(kRmsNorm) || (products_ && term->op()->is(kMatMul))
            ? void(choice_.values.insert(term))
            : chooseSum(term);
  }

  const Graph &graph_;
  const llvm::DenseSet<const Value *> &dependent_;
  bool products_;
  WideChoice choice_;
};

} // namespace

WideChoice chooseWide(const Graph &graph, const llvm::DenseSet<const Value *> &dependent, bool products) {
  return Chooser(graph, dependent, products).run();
}

} // namespace shardc::precision
