// SPDX-License-Identifier: Apache-2.0
// Gradients become buckets, and buckets are summed over micro-steps and ranks as the stage says.
#include "ir/graph/Builder.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/Accumulator.h"
#include "passes/Partition.h"
#include "passes/zero/State.h"

namespace shardc::zero {
namespace {

class Reduction {
public:
  Reduction(Graph &graph, const CompileOptions &options)
      : graph_(graph), options_(options), stage_(options.stage()),
        more_(options.microStep == MicroStep::Middle || options.microStep == MicroStep::Last),
        last_(options.microStep == MicroStep::Only || options.microStep == MicroStep::Last) {
    for (const Parameter &p : graph.parameters)
      if (Value *gradient = graph.output((kGradientPrefix + p.name).str()))
        ++outputs_[gradient];
  }

  void run(const Buckets &buckets) {
    for (auto [i, bucket] : llvm::enumerate(buckets))
      if (bucket.trainable)
        graph_.addOutput(stateName(Role::Gradient, i), reduce(bucket, i));
    for (const Parameter &p : graph_.parameters)
      graph_.eraseOutput((kGradientPrefix + p.name).str());
  }

private:
  Value *reduce(const Bucket &bucket, int64_t index) {
    Builder b(graph_);
    b.phase = Phase::Backward;
    b.layer = b.place = bucket.name;
    if (stage_ <= 1) { // the whole bucket adds up here; ranks meet at the end
      Value *whole = pack(b, bucket, more_ ? readFirst(bucket, index) : nullptr);
      if (!last_ || options_.ranks == 1)
        return whole;
      if (stage_ == 0)
        return collective(b, kAllReduceStart, {whole}, options_, bucket.name + ".gradient.sum");
      collective(b, kReduceScatterStart, {whole}, options_, bucket.name + ".gradient.slice", {{"in_place", int64_t(1)}});
      return whole;
    }
    Value *slice = collective(b, kReduceScatterStart, {pack(b, bucket, nullptr)}, options_, bucket.name + ".gradient.slice");
    Type kept = stateType(bucket, Role::Gradient, options_);
    slice = b.cast(slice, kept.dtype);
    return more_ ? b.add(readState(b, Role::Gradient, kept, index), slice) : slice;
  }

  /// Gradients add to it all over the backward pass, so it is read at the very start.
  Value *readFirst(const Bucket &bucket, int64_t index) {
    Builder first(graph_, &graph_.ops().front());
    first.layer = first.place = bucket.name;
    return readState(first, Role::Gradient, stateType(bucket, Role::Gradient, options_), index);
  }

  Value *gradientOf(const BucketMember &member) const {
    return graph_.output((kGradientPrefix + graph_.parameters[member.parameter].name).str());
  }

  /// How many of the first members have gradients that are all of one array, end to end as the parameters are; else 1.
  size_t joined(llvm::ArrayRef<BucketMember> members) const {
    Value *first = gradientOf(members[0]), *all = first->op()->is(kSlice) ? first->op()->operand(0) : nullptr;
    std::optional<Partition> partition = all ? partitionOf(all, Phase::Backward) : std::nullopt;
    if (!partition || partition->axis != 0 || partition->slices.size() != all->uses().size() || partition->slices.size() > members.size())
      return 1;
    int64_t end = members[0].offset;
    for (auto [slice, member] : llvm::zip(partition->slices, members)) {
      const Value *gradient = slice->result();
      if (gradientOf(member) != gradient || outputs_.lookup(gradient) != 1 || gradient->hasUses() || member.offset != end)
        return 1;
      end += gradient->type().numElements();
    }
    return partition->slices.size();
  }

  Value *pack(Builder &b, const Bucket &bucket, Value *into) {
    llvm::SmallVector<Value *> operands{into};
    Ints offsets;
    llvm::ArrayRef<BucketMember> rest = bucket.members;
    while (!rest.empty()) {
      Value *gradient = gradientOf(rest.front());
      const size_t n = gradient ? joined(rest) : 1;
      if (n > 1) { // of a merged product: all at once
        Value *all = gradient->op()->operand(0);
        operands.push_back(into ? addTo(into, rest.front().offset, all) : all);
      } else if (gradient) {
        operands.push_back(into ? addTo(into, rest.front().offset, gradient) : gradient);
      }
      if (gradient) // else the loss does not depend on it
        offsets.push_back(rest.front().offset);
      rest = rest.drop_front(n);
    }
    if (offsets.empty() && into)
      return into; // nothing to add
    if (offsets.empty()) {
      operands.push_back(b.expand(b.scalar(options_.packedGradientType(bucket.dtype), 0), {bucket.elements}));
      offsets.push_back(0);
    }
    return b.make(kPack, operands, {{"offsets", offsets}, {"elements", bucket.elements}}, bucket.name + ".gradients");
  }

  /// gradient + what `into` holds from `offset` on, if possible inside the op that makes the gradient: the first of a chain of
  /// accumulations takes it as what it adds to.
  Value *addTo(Value *into, int64_t offset, Value *gradient) {
    auto before = [&](Op *op, const Dims &dims) {
      Builder b(graph_, op);
      b.stampLike(*op);
      return b.reshape(b.slice(into, {offset}, {numElements(dims)}), dims);
    };
    Value *term = gradient;
    // Of a merged product: nothing but the parameters' slices, which nobody reads.
    bool alone = outputs_.count(gradient) ? outputs_.lookup(gradient) == 1 && !gradient->hasUses()
                                          : llvm::none_of(gradient->uses(), [](const Use &use) { return use.op->result()->hasUses(); });
    while (alone && term->op()->is(kReshape)) {
      term = term->op()->operand(0);
      alone = term->hasOneUse() && !outputs_.count(term);
    }
    while (std::optional<unsigned> acc = alone ? accumulatorOf(term->op()->def()) : std::nullopt) {
      Op *op = term->op();
      if (!op->operand(*acc)) {
        while (op->numOperands() <= *acc)
          op->addOperand(nullptr);
        op->setOperand(*acc, before(op, term->type().dims));
        return gradient;
      }
      term = op->operand(*acc);
      alone = term->hasOneUse() && !outputs_.count(term);
    }
    Op *maker = term->op();
    if (alone && term != gradient) { // the first summand of the chain
      Builder b(graph_, &*std::next(maker->getIterator()));
      b.stampLike(*maker);
      Use use = term->uses().front();
      use.op->setOperand(use.index, b.add(before(&*std::next(maker->getIterator()), term->type().dims), term));
      return gradient;
    }
    // Directly behind it, so that the bucket is complete as soon as its gradients are.
    Op *definition = gradient->op();
    auto next = std::next(definition->getIterator());
    Builder b(graph_, definition->phase == Phase::Backward && next != graph_.ops().end() ? &*next : nullptr);
    b.stampLike(*maker);
    b.phase = Phase::Backward;
    return b.add(b.reshape(b.slice(into, {offset}, {gradient->type().numElements()}), gradient->type().dims), gradient);
  }

  Graph &graph_;
  const CompileOptions &options_;
  unsigned stage_;
  bool more_, last_; ///< not the first micro-step; the last one
  llvm::DenseMap<const Value *, unsigned> outputs_; ///< of how many parameters it is the gradient
};

} // namespace

void reduceGradients(Graph &graph, const Buckets &buckets, const CompileOptions &options) {
  Reduction(graph, options).run(buckets);
}

} // namespace shardc::zero
