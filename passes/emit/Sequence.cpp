// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/Sequence.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "passes/Accumulator.h"

namespace shardc::emit {
namespace {

bool isSource(const Op &op) { return op.is(kInput) || op.is(kParam) || op.is(kConstant) || op.is(kScalars); }

/// Does nothing but its only user read the value, through views or not?
bool readOnce(const Value *value) {
  while (value->hasOneUse() && value->op()->def().view)
    value = value->op()->operand(0);
  return value->hasOneUse();
}

/// The operand that result 0 overwrites: by definition, or, where it adds to it, because nobody else reads it. Null if there is none.
const Value *accumulator(const Op &op) {
  for (const InPlace &pair : op.def().inPlace)
    if (const Value *operand = op.operand(pair.operand); operand && pair.result == 0)
      if (op.def().inPlaceRequired || (accumulatorOf(op.def()) == unsigned(pair.operand) && readOnce(operand)))
        return operand;
  return nullptr;
}

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
  void placeOperands(const Op &pack) {
    for (auto [offset, value] : llvm::zip(pack.attrs.getInts("offsets"), pack.operands().drop_front()))
      if (!tryPlace(value, {pack.result(), offset}, pack.operand(0)))
        copies_[&pack].push_back({Item::Copy, &pack, value, {pack.result(), offset}, 0});
  }

  /// Lets the value be born in its place, if the memory it has by itself is exactly that: row-major, not taken yet, and no source
  /// but `into`, which lies there already.
  bool tryPlace(const Value *value, PackedPlace place, const Value *into) {
    Layout layout = seq_.layoutOf(value);
    if (layout.offset != 0 || layout.rankStride != 0 || !layoutFits(layout, value->type().dims, kContiguous))
      return false;
    // What accumulates in place shares the memory of what it adds to, back to the first summand.
    llvm::SmallVector<const Value *> chain;
    for (const Value *v = layout.root; v; v = accumulator(*v->op())) {
      layout = seq_.layoutOf(v);
      if (into && layout.root == into && layout.offset == place.offset)
        break;
      v = layout.root;
      if (isSource(*v->op()) || seq_.born.count(v) || v->type().numElements() != value->type().numElements())
        return false;
      chain.push_back(v);
    }
    for (const Value *v : chain)
      seq_.born[v] = place;
    return true;
  }

  /// Are all parts made by kernels that can write with strides, each by another one, and read by nobody else?
  bool canBeBornIn(const Op &concat) const {
    llvm::SmallPtrSet<const Op *, 4> makers;
    return !seq_.graph->isOutput(concat.result()) && !seq_.born.count(concat.result()) && concat.result()->type().numElements() &&
           llvm::all_of(concat.operands(), [&](const Value *v) {
             return v->op()->is(kFused) && makers.insert(v->op()).second && v->hasOneUse() && !seq_.graph->isOutput(v) &&
                    !seq_.born.count(v);
           });
  }

  /// The parts lie in the whole from the start: nothing is left to do.
  void placeParts(const Op &concat) {
    const Type &type = concat.result()->type();
    const Dims strides = rowMajorStrides(type.dims);
    const int64_t axis = (concat.attrs.getInt("axis") + type.rank()) % type.rank();
    int64_t offset = 0;
    for (const Value *v : concat.operands()) {
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
