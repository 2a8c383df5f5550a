// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Sequence.h"
#include "llvm/ADT/StringMap.h"

namespace shardc::emit {
namespace {

bool isSource(const Op &op) { return op.is(kInput) || op.is(kParam) || op.is(kConstant) || op.is(kScalars); }

/// The operand that result 0 overwrites by definition, null if there is none.
const Value *accumulator(const Op &op) {
  if (!op.def().inPlaceRequired)
    return nullptr;
  for (const InPlace &pair : op.def().inPlace)
    if (pair.result == 0)
      return op.operand(pair.operand);
  return nullptr;
}

class SequenceBuilder {
public:
  SequenceBuilder(const Graph &graph, const Buckets &buckets) : buckets_(buckets) { seq_.graph = &graph; }

  Sequence run() {
    for (const Op &op : seq_.graph->ops())
      if (op.def().view)
        seq_.views[op.result()] = *viewLayout(op, seq_.layoutOf(op.operand(0)));
    placeGradients();
    issue();
    return std::move(seq_);
  }

private:
  void placeGradients() {
    llvm::StringMap<GradientPlace> places;
    for (auto [i, bucket] : llvm::enumerate(buckets_))
      for (const BucketMember &member : bucket.members)
        places[seq_.graph->parameters[member.parameter].name] = {unsigned(i), member.offset};
    for (auto &[name, value] : seq_.graph->outputs()) {
      llvm::StringRef parameter = name;
      if (!parameter.consume_front(kGradientPrefix))
        continue;
      GradientPlace place = places.lookup(parameter);
      covered_[place.bucket].push_back({place.offset, value->type().numElements()});
      if (!tryPlace(value, place))
        copies_.push_back({Item::CopyGradient, nullptr, value, place, 0});
    }
  }

  /// Lets the gradient be born in its bucket, if the memory it has by itself is exactly that: row-major, not taken yet, and no source.
  bool tryPlace(const Value *gradient, GradientPlace place) {
    Layout layout = seq_.layoutOf(gradient);
    const Value *root = layout.root;
    if (layout.offset != 0 || root->type().numElements() != gradient->type().numElements() ||
        !layoutFits(layout, gradient->type().dims, kContiguous))
      return false;
    // What accumulates in place shares the memory of what it adds to, back to the first summand.
    llvm::SmallVector<const Value *> chain;
    for (const Value *v = root; v; v = accumulator(*v->op())) {
      v = seq_.layoutOf(v).root;
      if (isSource(*v->op()) || seq_.gradients.count(v) || v->type().numElements() != root->type().numElements())
        return false;
      chain.push_back(v);
    }
    for (const Value *v : chain)
      seq_.gradients[v] = place;
    return true;
  }

  void issue() {
    for (const Op &op : seq_.graph->ops()) {
      if (isSource(op) || op.def().view)
        continue;
      if (op.phase == Phase::Update) {
        seq_.update.push_back({Item::Run, &op});
        continue;
      }
      for (unsigned i = 0; i < op.numResults(); ++i)
        if (auto found = seq_.gradients.find(op.result(i)); found != seq_.gradients.end())
          fillGaps(found->second.bucket);
      seq_.step.push_back({Item::Run, &op});
    }
    for (const Item &copy : copies_) {
      fillGaps(copy.place.bucket);
      seq_.step.push_back(copy);
    }
    bool trains = !covered_.empty();
    for (unsigned b = 0; trains && b < buckets_.size(); ++b)
      fillGaps(b);
  }

  void fillGaps(unsigned bucket) {
    if (!buckets_[bucket].trainable || !filled_.insert({bucket, true}).second)
      return;
    auto &covered = covered_[bucket];
    llvm::sort(covered);
    int64_t at = 0;
    auto fillTo = [&](int64_t end) {
      if (end > at)
        seq_.step.push_back({Item::Fill, nullptr, nullptr, {bucket, at}, end - at});
    };
    for (auto [offset, count] : covered) {
      fillTo(offset);
      at = offset + count;
    }
    fillTo(buckets_[bucket].elements);
  }

  const Buckets &buckets_;
  Sequence seq_;
  std::vector<Item> copies_;
  llvm::DenseMap<unsigned, llvm::SmallVector<std::pair<int64_t, int64_t>>> covered_; ///< offset, count
  llvm::DenseMap<unsigned, bool> filled_;
};

} // namespace

Sequence buildSequence(const Graph &graph, const Buckets &buckets) { return SequenceBuilder(graph, buckets).run(); }

} // namespace shardc::emit
