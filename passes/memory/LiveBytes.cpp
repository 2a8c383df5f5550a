// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/LiveBytes.h"
#include "ir/plan/Plan.h"
#include "passes/zero/State.h"
#include "llvm/Support/MathExtras.h"

namespace shardc {

using zero::Role;

/// The operand that result `result` overwrites by definition, null if there is none.
static const Value *overwritten(const Op &op, unsigned result) {
  if (op.is(kReduceScatterStart))
    return op.attrs.getInt("in_place", 0) ? op.operand(0) : nullptr;
  if (op.def().inPlaceRequired)
    for (const InPlace &pair : op.def().inPlace)
      if (pair.result == int(result) && op.operand(pair.operand))
        return op.operand(pair.operand);
  return nullptr;
}

LiveBytes::LiveBytes(const Graph &graph, const CompileOptions &options)
    : options_(options), sequence_(emit::buildSequence(graph)) {
  joinStates();
  for (const Op &op : graph.ops())
    joinResults(op);
  for (const emit::Item &item : sequence_.items) {
    if (item.kind == emit::Item::Run)
      noteRun(*item.op);
    if (item.kind == emit::Item::Copy) {
      note(*item.op, item.value);
      note(*item.op, item.place.packed);
    }
  }
  restart();
}

unsigned LiveBytes::add(uint64_t bytes) {
  memories_.push_back({.bytes = llvm::alignTo(bytes, kAlignment)});
  joined_.push_back(joined_.size());
  return joined_.back();
}

unsigned LiveBytes::find(unsigned memory) const {
  while (joined_[memory] != memory)
    memory = joined_[memory];
  return memory;
}

unsigned LiveBytes::memory(const Value *root) {
  auto [found, isNew] = ofRoot_.try_emplace(root, 0);
  if (isNew)
    found->second = add(uint64_t(root->type().numBytes()));
  return find(found->second);
}

void LiveBytes::join(const Value *root, unsigned into) {
  unsigned from = memory(root);
  into = find(into);
  if (from == into)
    return;
  Memory &all = memories_[into], &part = memories_[from];
  all.bytes = std::max(all.bytes, part.bytes);
  all.persistent |= part.persistent;
  all.before |= part.before;
  all.behind |= part.behind;
  all.activation &= part.activation;
  joined_[from] = into;
}

unsigned LiveBytes::stateMemory(llvm::StringRef name, uint64_t bytes) {
  auto [found, isNew] = states_.try_emplace(name, 0);
  if (isNew) {
    found->second = add(bytes);
    memories_[found->second].activation = false;
    memories_[found->second].persistent = zero::parseStateName(name).first != Role::Gradient;
  }
  return found->second;
}

/// States that the program reads or leaves, and what else outlives it.
void LiveBytes::joinStates() {
  for (const Op &op : sequence_.graph->ops()) {
    if (!isSource(op))
      continue;
    if (zero::roleOf(op)) {
      unsigned state = stateMemory(op.attrs.getString("name"), uint64_t(op.result()->type().numBytes()));
      memories_[state].before = true;
      join(op.result(), state);
    } else {
      memories_[memory(op.result())].persistent = true;
    }
  }
  for (auto &[name, value] : sequence_.graph->outputs()) {
    const Value *root = sequence_.rootOf(value);
    if (zero::isStateName(name)) {
      unsigned state = stateMemory(name, uint64_t(value->type().numBytes()));
      memories_[find(state)].behind = true;
      join(root, state);
    } else if (!isSource(*root->op())) {
      memories_[memory(root)].persistent = true;
    }
  }
}

void LiveBytes::joinResults(const Op &op) {
  if (isFree(op))
    return;
  for (unsigned i = 0; i < op.numResults(); ++i) {
    const Value *value = op.result(i);
    if (op.def().view || sequence_.rootOf(value) != value)
      continue; // a wait, or part of a whole
    if (auto born = sequence_.born.find(value); born != sequence_.born.end())
      join(value, memory(born->second.packed));
    else if (const Value *over = overwritten(op, i))
      join(value, memory(sequence_.rootOf(over)));
    else if (op.is(kPack) || op.def().collective == Collective::Start)
      memories_[memory(value)].activation = false;
  }
}

void LiveBytes::note(const Op &op, const Value *value) {
  unsigned of = memory(sequence_.rootOf(value));
  Accesses &accesses = accesses_[&op];
  if (memories_[of].persistent ||
      llvm::any_of(accesses.memories, [&](const Access &a) { return a.memory == of; }))
    return;
  accesses.memories.push_back({of, llvm::alignTo(uint64_t(value->type().numBytes()), kAlignment)});
  ++memories_[of].accesses;
}

void LiveBytes::noteRun(const Op &op) {
  for (const Value *operand : op.operands())
    if (operand)
      note(op, operand);
  if (op.def().collective == Collective::Done) { // until here the start used its operands
    for (const Value *operand : op.operand(0)->op()->operands())
      if (operand)
        note(op, operand);
    return;
  }
  for (unsigned i = 0; i < op.numResults(); ++i) {
    note(op, op.result(i));
    notePairs(op, i);
  }
  if (options_.target == "cuda" && op.def().workspace)
    accesses_[&op].workspace = llvm::alignTo(uint64_t(op.def().workspace(op)), kAlignment);
}

/// Operands that have the result's size and layout and memory of their own, which so has the result.
void LiveBytes::notePairs(const Op &op, unsigned result) {
  const Value *value = op.result(result);
  unsigned to = memory(sequence_.rootOf(value));
  if (sequence_.rootOf(value) != value || sequence_.born.count(value) || overwritten(op, result) ||
      memories_[to].persistent || !memories_[to].activation)
    return;
  for (const InPlace &pair : op.def().inPlace) {
    const Value *operand = op.operand(pair.operand);
    if (pair.result != int(result) || !operand)
      continue;
    Layout layout = sequence_.layoutOf(operand);
    unsigned from = memory(layout.root);
    bool fits = layout.offset == 0 && layout.root->type().numBytes() == value->type().numBytes() &&
                operand->type().dims == value->type().dims &&
                layoutFits(layout, operand->type().dims, kContiguous) && !memories_[from].persistent &&
                memories_[from].activation;
    for (unsigned i = 0; fits && i < op.numOperands(); ++i)
      if (op.operand(i) && int(i) != pair.operand)
        fits = memory(sequence_.rootOf(op.operand(i))) != from;
    if (fits)
      accesses_[&op].pairs.push_back({from, to});
  }
}

void LiveBytes::restart() {
  now_ = 0;
  left_.assign(memories_.size(), 0);
  lives_.assign(memories_.size(), false);
  for (auto [i, memory] : llvm::enumerate(memories_)) {
    left_[i] = memory.accesses;
    lives_[i] = find(i) == i && memory.before && !memory.persistent && (memory.accesses || memory.behind);
    now_ += lives_[i] ? memory.bytes : 0;
  }
}

LiveBytes::Live LiveBytes::next(const Op &op) const {
  auto found = accesses_.find(&op);
  if (found == accesses_.end())
    return {now_, now_, 0};
  uint64_t born = 0, own = 0, died = 0, taken = 0;
  for (auto [memory, bytes] : found->second.memories) {
    born += lives_[memory] ? 0 : memories_[memory].bytes;
    own += lives_[memory] ? 0 : bytes;
    died += left_[memory] == 1 && !memories_[memory].behind ? memories_[memory].bytes : 0;
  }
  llvm::SmallVector<unsigned, 4> used; // by an earlier pair
  for (const Pair &pair : found->second.pairs)
    if (left_[pair.operand] == 1 && !llvm::is_contained(used, pair.operand) &&
        !llvm::is_contained(used, pair.result)) {
      used.append({pair.operand, pair.result});
      taken += memories_[pair.operand].bytes;
    }
  return {now_ + born - taken + found->second.workspace, now_ + born - died, int64_t(own - died)};
}

void LiveBytes::run(const Op &op) {
  now_ = next(op).after;
  auto found = accesses_.find(&op);
  if (found == accesses_.end())
    return;
  for (auto [memory, bytes] : found->second.memories) {
    assert(left_[memory] && "it has run before");
    lives_[memory] = --left_[memory] || memories_[memory].behind;
  }
}

} // namespace shardc
