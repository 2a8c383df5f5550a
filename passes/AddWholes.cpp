// SPDX-License-Identifier: Apache-2.0
#include "passes/AddWholes.h"
#include "ir/graph/Builder.h"
#include "passes/Accumulator.h"
#include "passes/Partition.h"

namespace shardc {

std::optional<Rows> rowsOf(const Op &slice) {
  if (!slice.is(kSlice))
    return std::nullopt;
  const Dims &whole = slice.operand(0)->type().dims, &part = slice.result()->type().dims;
  if (whole.empty() || slice.attrs.getInts("steps")[0] != 1 || llvm::ArrayRef(whole).drop_front() != llvm::ArrayRef(part).drop_front())
    return std::nullopt;
  const int64_t begin = slice.attrs.getInts("starts")[0];
  return Rows{begin, begin + part[0]};
}

namespace {

/// The sums of all parts of `whole` with rows of `other`.
struct Match {
  Value *whole = nullptr, *other = nullptr;
  int64_t first = 0; ///< row of `other` that row 0 of `whole` is added to
  llvm::SmallVector<Op *, 4> sums; ///< in the order of rows
};

/// The add that alone reads the slice.
Op *sumOf(const Op &slice) {
  const Value *part = slice.result();
  if (!part->hasOneUse() || slice.graph().isOutput(part))
    return nullptr;
  Op *user = part->uses().front().op;
  return user->is(kAdd) && user->phase == Phase::Backward ? user : nullptr;
}

std::optional<Match> match(Value *whole) {
  std::optional<Partition> parts = partitionOf(whole, Phase::Backward);
  if (!parts || parts->axis != 0 || parts->slices.size() != whole->uses().size() || whole->op()->graph().isOutput(whole))
    return std::nullopt;
  Match found;
  found.whole = whole;
  for (Op *slice : parts->slices) {
    Op *sum = sumOf(*slice);
    if (!sum || !(sum->result()->hasUses() || sum->graph().isOutput(sum->result()))) // or taken already
      return std::nullopt;
    const Value *term = sum->operand(sum->operand(0) == slice->result() ? 1 : 0);
    std::optional<Rows> rows = rowsOf(*term->op());
    if (!rows || term->type() != slice->result()->type())
      return std::nullopt;
    const int64_t first = rows->begin - rowsOf(*slice)->begin;
    Value *other = term->op()->operand(0);
    if (other == whole || (found.other && (found.other != other || found.first != first)))
      return std::nullopt;
    found.other = other, found.first = first;
    found.sums.push_back(sum);
  }
  return found;
}

class WholeAdder {
public:
  explicit WholeAdder(Graph &graph) : graph_(graph) {}

  void run() {
    llvm::SmallVector<Value *> results;
    for (Op &op : graph_.ops()) {
      position_[&op] = position_.size();
      if (op.phase == Phase::Backward && op.numResults() == 1 && !op.def().view)
        results.push_back(op.result());
    }
    for (Value *whole : results)
      if (std::optional<Match> found = match(whole))
        rewrite(*found);
    for (Op *sum : gone_) {
      Op *parts[] = {sum->operand(0)->op(), sum->operand(1)->op()};
      graph_.erase(sum);
      for (Op *part : parts)
        if (!part->result()->hasUses() && !graph_.isOutput(part->result()))
          graph_.erase(part);
    }
  }

private:
  void rewrite(const Match &found) {
    Op *first = *llvm::min_element(found.sums, [&](Op *a, Op *b) { return position_.lookup(a) < position_.lookup(b); });
    Builder b(graph_, first);
    b.stampLike(*first);
    Value *rows = found.other;
    if (rows->type() != found.whole->type()) {
      Ints starts(rows->type().rank(), 0);
      starts[0] = found.first;
      rows = b.slice(rows, starts, found.whole->type().dims);
    }
    Op &maker = *found.whole->op(); // what can add to the rows itself must come after them; nobody waits for it
    if (accumulatorOf(maker.def()) && position_.lookup(&maker) < position_.lookup(found.other->op()))
      graph_.moveBefore(&maker, first);
    Value *all = b.add(rows, found.whole);
    position_[all->op()] = position_[first];
    Ints starts(all->type().rank(), 0);
    for (Op *sum : found.sums) {
      b.stampLike(*sum);
      Value *part = b.slice(all, starts, sum->result()->type().dims);
      starts[0] += part->type().dims[0];
      graph_.replaceAllUses(sum->result(), part);
      gone_.push_back(sum);
    }
  }

  Graph &graph_;
  llvm::DenseMap<const Op *, unsigned> position_;
  llvm::SmallVector<Op *> gone_; ///< sums that nobody reads any more
};

} // namespace

void addWholes(Graph &graph) { WholeAdder(graph).run(); }

} // namespace shardc
