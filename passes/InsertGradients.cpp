// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/Buckets.h"
#include "passes/Partition.h"
#include "passes/Passes.h"
#include "passes/precision/LossScale.h"

namespace shardc {
namespace {

/// A gradient while contributions add up. Those of a 16-bit float are 16-bit; those of a wide value (f32
/// among these) may be. Two of 16 bits are added as such; with a third, or one of f32, all are added in f32,
/// and the sum is rounded once, when somebody reads it, if all were of 16 bits.
class Sum {
public:
  void add(Builder &b, Value *term) {
    const DType dtype = term->type().dtype;
    const bool alike = !terms_ || dtype == first_->type().dtype;
    if (isHalf(dtype))
      half_ = dtype;
    else
      rounds_ = false;
    ++terms_;
    if (wide_) {
      wide_ = b.add(wide_, b.cast(term, DType::F32));
    } else if (terms_ == 1 || (alike && (terms_ == 2 || !isHalf(dtype)))) {
      sum_ = terms_ > 1 ? b.add(sum_, term) : term;
      (terms_ == 1 ? first_ : second_) = term;
      return;
    } else { // the sum of two of 16 bits is not used then
      Value *before = isHalf(first_->type().dtype) && second_
                          ? b.add(b.cast(first_, DType::F32), b.cast(second_, DType::F32))
                          : b.cast(sum_, DType::F32);
      wide_ = b.add(before, b.cast(term, DType::F32));
    }
    sum_ = nullptr;
  }
  /// As it is, or rounded to 16 bits; null: nothing contributed.
  Value *get(Builder &b) {
    if (!sum_ && wide_)
      sum_ = rounds_ ? b.cast(wide_, half_) : wide_;
    return sum_;
  }
  /// The op that has added the last term.
  const Op *last() const { return (sum_ ? sum_ : wide_)->op(); }
  Value *get(Builder &b, DType dtype) { return wide_ && dtype == DType::F32 ? wide_ : b.cast(get(b), dtype); }

private:
  unsigned terms_ = 0;
  bool rounds_ = true; ///< all terms are of 16 bits
  DType half_ = DType::BF16;
  Value *first_ = nullptr, *second_ = nullptr, *sum_ = nullptr, *wide_ = nullptr;
};

/// One run of reverse mode. A value's gradient is the sum of what its users contribute.
class Reverse {
public:
  Reverse(Graph &graph, Value *loss, const CompileOptions &options) : graph_(graph), loss_(loss), options_(options) {}

  llvm::Error run() {
    findActive();
    Builder seed(graph_);
    seed.phase = Phase::Backward;
    gradients_[loss_].add(seed, precision::scalesLoss(options_) ? precision::scaledSeed(seed, options_)
                                                                : seed.scalar(loss_->type().dtype, 1));
    llvm::SmallVector<Op *> forward;
    for (Op &op : graph_.ops())
      if (op.phase == Phase::Forward)
        forward.push_back(&op);
    for (Op *op : llvm::reverse(forward))
      if (llvm::Error error = visit(*op))
        return error;
    for (const Parameter &p : graph_.parameters)
      if (auto found = gradients_.find(p.value); p.value && p.trainable && found != gradients_.end()) {
        const Op *last =
            found->second
                .last(); // directly behind it, so that a bucket is complete as soon as its gradients are
        auto next = std::next(last->getIterator());
        Builder b(graph_, next == graph_.ops().end() ? nullptr : const_cast<Op *>(&*next));
        b.stampLike(*last);
        b.phase = Phase::Backward;
        graph_.addOutput((kGradientPrefix + p.name).str(),
                         found->second.get(b, options_.packedGradientType(p.type.dtype)));
      }
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

  /// Does the rule take 16-bit gradients of f32 results?
  static bool takesNarrow(const Op &op) {
    return op.def().scalar || op.def().view || op.is(kMatMul) || op.is(kLayerNorm) || op.is(kRmsNorm);
  }

  /// Of a value that slices take apart the gradient is theirs side by side, once all of them are known.
  void visitSlice(const Partition &partition, Value *whole) {
    if (++slicesSeen_[whole] < partition.slices.size() || !active_.contains(whole))
      return;
    Builder b(graph_);
    b.stampLike(*partition.slices.front());
    b.phase = Phase::Backward;
    llvm::SmallVector<Value *, 4> parts;
    std::optional<DType> dtype; // what all have, else that of the whole
    for (Op *slice : partition.slices) {
      auto found = gradients_.find(slice->result());
      parts.push_back(found != gradients_.end() ? found->second.get(b) : nullptr);
      if (const Value *part = parts.back())
        dtype = dtype && *dtype != part->type().dtype ? whole->type().dtype : part->type().dtype;
    }
    if (!dtype)
      return;
    for (auto [part, slice] : llvm::zip(parts, partition.slices))
      part = part ? b.cast(part, *dtype) : b.expand(b.scalar(*dtype, 0), slice->result()->type().dims);
    gradients_[whole].add(b, b.make(kConcat, parts, {{"axis", partition.axis}}));
  }

  llvm::Error visit(Op &op) {
    if (std::optional<Partition> partition =
            op.is(kSlice) ? partitionOf(op.operand(0), Phase::Forward) : std::nullopt) {
      visitSlice(*partition, op.operand(0));
      return llvm::Error::success();
    }
    llvm::SmallVector<Value *, 4> resultGrads;
    Builder b(graph_);
    b.stampLike(op);
    b.phase = Phase::Backward;
    for (unsigned i = 0; i < op.numResults(); ++i) {
      auto found = gradients_.find(op.result(i));
      resultGrads.push_back(found != gradients_.end() ? found->second.get(b) : nullptr);
      if (Value *&gradient = resultGrads.back(); gradient && !takesNarrow(op))
        gradient = b.cast(gradient, op.result(i)->type().dtype);
    }
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
      if (Value *gradient = context.grad(i))
        gradients_[op.operand(i)].add(context, gradient);
    return llvm::Error::success();
  }

  Graph &graph_;
  Value *loss_;
  const CompileOptions &options_;
  llvm::DenseSet<const Value *> active_;
  llvm::DenseMap<const Value *, Sum> gradients_;
  llvm::DenseMap<const Value *, unsigned> slicesSeen_; ///< by what they take apart
};

} // namespace

llvm::Error insertGradients(Graph &graph, const CompileOptions &options) {
  Value *loss = graph.output("loss_sum");
  if (!loss)
    return userError("insert-gradients: the graph has no output 'loss_sum'", "give --loss");
  if (llvm::Error error = Reverse(graph, loss, options).run())
    return error;
  bool any = llvm::any_of(graph.outputs(),
                          [](auto &o) { return llvm::StringRef(o.first).starts_with(kGradientPrefix); });
  graph.level = Level::Step;
  if (!any)
    return userError("insert-gradients: no trainable parameter reaches the loss",
                     "check --loss, --logits and --freeze");
  return llvm::Error::success();
}

} // namespace shardc
