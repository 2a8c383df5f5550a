// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Sequence.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "passes/Accumulator.h"

namespace shardc::emit {
namespace {

bool isSource(const Op &op) { return op.is(kInput) || op.is(kParam) || op.is(kConstant) || op.is(kScalars); }

class SequenceBuilder {
public:
  explicit SequenceBuilder(const Graph &graph) { seq_.graph = &graph; }

  Sequence run() {
    for (const Op &op : seq_.graph->ops())
      if (op.def().view)
        seq_.views[op.result()] = *viewLayout(op, seq_.layoutOf(op.operand(0)));
    for (const Op &op : seq_.graph->ops())
      if (op.is(kPack))
        placeOperands(op);
    for (const Op &op : seq_.graph->ops())
      if (op.is(kConcat) && canBeBornIn(op))
        placeParts(op);
    for (const Op &op : seq_.graph->ops())
      issue(op);
    return std::move(seq_);
  }

private:
  /// Values and the element of the pack that the first of theirs would be: what is packed, what it overwrites as it accumulates, and so on.
  using Chain = llvm::SmallVector<std::pair<const Value *, int64_t>, 2>;

  Chain chainOf(const Value *packed, int64_t offset, const Value *into) const {
    Chain chain;
    for (std::optional<Span> span = spanOf(packed); span;) {
      const Value *root = span->root;
      offset -= span->begin;
      if (root == into && offset == 0) // lies there already
        break;
      chain.push_back({root, offset});
      const Value *before = isSource(*root->op()) || root->index() ? nullptr : accumulator(*root->op(), /*parts=*/!into);
      span = before ? spanOf(before) : std::nullopt;
    }
    return chain;
  }

  /// Lets each operand be born in its place if the memory that it has by itself is exactly that, or is with other operands: row-major, not
  /// taken yet, no source. What accumulates in place shares the memory of what it adds to, back to the first summand.
  void placeOperands(const Op &pack) {
    const auto operands = pack.operands().drop_front();
    llvm::SmallVector<Chain> chains;
    for (auto [offset, value] : llvm::zip(pack.attrs.getInts("offsets"), operands))
      chains.push_back(chainOf(value, offset, pack.operand(0)));
    llvm::SmallVector<bool> copied(chains.size());
    llvm::DenseMap<const Value *, int64_t> places;
    for (bool changed = true; changed;) {
      changed = false;
      places.clear();
      llvm::DenseMap<const Value *, int64_t> covered; ///< elements
      for (auto [chain, value] : llvm::zip(chains, operands))
        for (auto [root, at] : chain)
          if (places.try_emplace(root, at).first->second == at)
            covered[root] += value->type().numElements();
      for (auto [chain, copy] : llvm::zip(chains, copied)) {
        auto fits = [&](const std::pair<const Value *, int64_t> &link) {
          const Value *root = link.first;
          return !isSource(*root->op()) && !seq_.born.count(root) && places.lookup(root) == link.second &&
                 covered.lookup(root) == root->type().numElements();
        };
        const size_t good = llvm::find_if_not(chain, fits) - chain.begin();
        if (good == chain.size())
          continue;
        changed = true;
        copy = good == 0 || chain[good - 1].first->op()->def().inPlaceRequired;
        chain.truncate(copy ? 0 : good);
      }
    }
    for (auto [i, value] : llvm::enumerate(operands)) {
      if (copied[i] || !spanOf(value))
        copies_[&pack].push_back({Item::Copy, &pack, value, {pack.result(), pack.attrs.getInts("offsets")[i]}, 0});
      for (auto [root, at] : chains[i])
        seq_.born[root] = {pack.result(), at};
    }
  }

  /// A value's elements in memory, where they are neighbours.
  struct Span {
    const Value *root;
    int64_t begin, end;
  };
  std::optional<Span> spanOf(const Value *value) const {
    const Layout layout = seq_.layoutOf(value);
    if (layout.rankStride != 0 || !layoutFits(layout, value->type().dims, kContiguous))
      return std::nullopt;
    return Span{layout.root, layout.offset, layout.offset + value->type().numElements()};
  }

  /// Does nothing but its only user read these elements, through views or not?
  bool readOnce(const Value *value) const {
    const std::optional<Span> own = spanOf(value);
    auto reads = [&](const Use &use) {
      const std::optional<Span> other = use.op->def().view ? spanOf(use.op->result()) : std::nullopt;
      return !own || !other || other->root != own->root || (own->begin < other->end && other->begin < own->end);
    };
    for (;; value = value->op()->operand(0)) {
      if (llvm::count_if(value->uses(), reads) != 1)
        return false;
      if (!value->op()->def().view)
        return true;
    }
  }

  /// The operand that result 0 overwrites: by definition, or, where it adds to it, because nobody else reads it. Null if there is none.
  /// `parts`: also one that pointwise functions read, where it is a part of a larger array.
  const Value *accumulator(const Op &op, bool parts) const {
    for (const InPlace &pair : op.def().inPlace)
      if (const Value *operand = op.operand(pair.operand); operand && pair.result == 0) {
        const bool adds = accumulatorOf(op.def()) == unsigned(pair.operand) || (parts && isPart(operand, op));
        if (op.def().inPlaceRequired || (adds && readOnce(operand)))
          return operand;
      }
    return nullptr;
  }

  bool isPart(const Value *operand, const Op &op) const {
    return op.is(kFused) && operand->type() == op.result()->type() &&
           seq_.rootOf(operand)->type().numElements() > operand->type().numElements();
  }

  /// What is reshaped to be the part, by nobody read but for that.
  static const Value *madeAs(const Value *part) {
    while (part->op()->is(kReshape) && part->hasOneUse())
      part = part->op()->operand(0);
    return part->hasOneUse() ? part : nullptr;
  }

  /// Where a part of a whole with these strides lies as it is made; nullopt if its kernel cannot write it there.
  std::optional<Dims> stridesInside(const Value *made, const Value *part, const Dims &whole) const {
    if (made->op()->is(kFused))
      return made == part ? std::optional(whole) : std::nullopt;
    std::optional<Dims> strides = reshapeStrides(part->type().dims, whole, made->type().dims);
    const bool rows = strides && layoutFits({nullptr, 0, *strides}, made->type().dims, kLastDim);
    return made->op()->is(kRelativeAttentionGrad) && rows ? strides : std::nullopt;
  }

  /// Are all parts made by kernels that can write with strides, each fused one by another, and read by nobody else?
  bool canBeBornIn(const Op &concat) const {
    const Dims strides = rowMajorStrides(concat.result()->type().dims);
    llvm::SmallPtrSet<const Op *, 4> fused;
    return !seq_.graph->isOutput(concat.result()) && !seq_.born.count(concat.result()) && concat.result()->type().numElements() &&
           llvm::all_of(concat.operands(), [&](const Value *v) {
             const Value *made = madeAs(v);
             return made && stridesInside(made, v, strides) && !seq_.graph->isOutput(made) && !seq_.born.count(made) &&
                    (!made->op()->is(kFused) || fused.insert(made->op()).second);
           });
  }

  /// The parts lie in the whole from the start: nothing is left to do.
  void placeParts(const Op &concat) {
    const Type &type = concat.result()->type();
    const Dims strides = rowMajorStrides(type.dims);
    const int64_t axis = (concat.attrs.getInt("axis") + type.rank()) % type.rank();
    int64_t offset = 0;
    for (const Value *v : concat.operands()) {
      const Value *made = madeAs(v);
      seq_.views[made] = {concat.result(), offset, *stridesInside(made, v, strides)};
      seq_.views[v] = {concat.result(), offset, strides};
      offset += v->type().dims[axis] * strides[axis];
    }
    seq_.wholes.push_back(concat.result());
    inParts_.insert(&concat);
  }

  void issue(const Op &op) {
    if (op.is(kPack)) {
      fillGaps(op);
      seq_.items.insert(seq_.items.end(), copies_[&op].begin(), copies_[&op].end());
      return;
    }
    if (isSource(op) || inParts_.contains(&op) || (op.def().view && op.def().collective != Collective::Done))
      return;
    for (unsigned i = 0; i < op.numResults(); ++i)
      if (auto found = seq_.born.find(op.result(i)); found != seq_.born.end())
        fillGaps(*found->second.packed->op());
    seq_.items.push_back({Item::Run, &op});
  }

  void fillGaps(const Op &pack) {
    if (pack.operand(0) || !filled_.insert(&pack).second)
      return;
    int64_t at = 0;
    auto fillTo = [&](int64_t end) {
      if (end > at)
        seq_.items.push_back({Item::Fill, &pack, nullptr, {pack.result(), at}, end - at});
    };
    for (auto [offset, value] : llvm::zip(pack.attrs.getInts("offsets"), pack.operands().drop_front())) {
      fillTo(offset);
      at = offset + value->type().numElements();
    }
    fillTo(pack.result()->type().numElements());
  }

  Sequence seq_;
  llvm::DenseMap<const Op *, llvm::SmallVector<Item, 0>> copies_; ///< by pack
  llvm::DenseSet<const Op *> filled_;                             ///< packs
  llvm::DenseSet<const Op *> inParts_;                            ///< concats whose parts are born in their place
};

} // namespace

Sequence buildSequence(const Graph &graph) { return SequenceBuilder(graph).run(); }

} // namespace shardc::emit
