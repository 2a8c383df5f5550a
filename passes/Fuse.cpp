// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "passes/FusedBody.h"
#include "passes/Passes.h"
#include <queue>

namespace shardc {
namespace {

constexpr unsigned kMaxOps = 48, kMaxInputs = 12, kMaxVisits = 4096;

struct Group {
  llvm::SmallVector<Op *, 4> ops;     ///< in order
  unsigned first = 0, last = 0;       ///< positions
};

/// Grows groups along producer-consumer edges, in program order. A group stays convex: no path leaves it and comes back,
/// so that one op can stand for it.
class Fuser {
public:
  explicit Fuser(Graph &graph) : graph_(graph) {
    for (Op &op : graph.ops())
      position_[&op] = position_.size();
  }

  void run() {
    for (Op &op : graph_.ops())
      if (op.def().scalar)
        place(op);
    llvm::SmallVector<Op *> order = sorted();
    for (Op *op : order)
      graph_.moveBefore(op, nullptr);
    for (auto &group : groups_)
      if (group)
        emit(*group);
  }

private:
  Group *groupOf(const Op *op) const {
    auto found = index_.find(op);
    return found == index_.end() ? nullptr : groups_[found->second].get();
  }

  void place(Op &op) {
    unsigned own = groups_.size();
    groups_.push_back(std::make_unique<Group>());
    Group &group = *groups_.back();
    group.ops.push_back(&op);
    group.first = group.last = position_[&op];
    index_[&op] = own;
    for (Value *operand : op.operands())
      if (Group *other = operand ? groupOf(operand->op()) : nullptr)
        tryMerge(own, *other);
  }

  void tryMerge(unsigned own, Group &other) {
    Group &group = *groups_[own];
    if (&group == &other || other.ops[0]->phase != group.ops[0]->phase ||
        other.ops[0]->result()->type().dims != group.ops[0]->result()->type().dims ||
        group.ops.size() + other.ops.size() > kMaxOps)
      return;
    Group merged = other;
    merged.ops.append(group.ops.begin(), group.ops.end());
    llvm::sort(merged.ops, [&](Op *a, Op *b) { return position_[a] < position_[b]; });
    merged.first = std::min(group.first, other.first);
    merged.last = std::max(group.last, other.last);
    if (inputsOf(merged).size() > kMaxInputs || !convex(merged))
      return;
    unsigned gone = index_[other.ops[0]];
    for (Op *op : merged.ops)
      index_[op] = own;
    group = std::move(merged);
    groups_[gone] = nullptr;
  }

  llvm::SetVector<Value *> inputsOf(const Group &group) const {
    llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
    llvm::SetVector<Value *> inputs;
    for (Op *op : group.ops)
      for (Value *v : op->operands())
        if (v && !members.contains(v->op()) && !inlineNumber(v))
          inputs.insert(v);
    return inputs;
  }

  /// Walks upwards from the group's inputs, other groups as one node each; false if it meets the group again.
  bool convex(const Group &group) const {
    llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
    llvm::DenseSet<const Op *> seen;
    llvm::SmallVector<const Op *> stack;
    auto push = [&](const Op *op) {
      if (!seen.insert(op).second)
        return;
      const Group *other = groupOf(op);
      unsigned last = other ? other->last : position_.lookup(op);
      if (last > group.first || members.contains(op))
        stack.push_back(op);
    };
    for (Op *op : group.ops)
      for (Value *v : op->operands())
        if (v && !members.contains(v->op()))
          push(v->op());
    for (unsigned visits = 0; !stack.empty(); ++visits) {
      const Op *op = stack.pop_back_val();
      if (members.contains(op) || visits > kMaxVisits)
        return false;
      auto pushOperands = [&](const Op *member, const Group *own) {
        for (Value *v : member->operands())
          if (v && (!own || groupOf(v->op()) != own))
            push(v->op());
      };
      if (const Group *other = groupOf(op))
        for (const Op *member : other->ops)
          pushOperands(member, other);
      else
        pushOperands(op, nullptr);
    }
    return true;
  }

  /// A topological order in which the members of a group are adjacent; otherwise as near to the old order as can be.
  llvm::SmallVector<Op *> sorted() {
    llvm::DenseMap<const Op *, unsigned> waiting; // of a node: its first op, or the group's first op
    auto node = [&](const Op *op) -> const Op * {
      const Group *group = groupOf(op);
      return group ? group->ops[0] : op;
    };
    auto priority = [&](const Op *n) { return groupOf(n) ? groupOf(n)->last : position_[n]; };
    llvm::DenseMap<const Op *, llvm::SetVector<const Op *>> users;
    for (Op &op : graph_.ops()) {
      waiting.try_emplace(node(&op), 0);
      for (Value *v : op.operands())
        if (v && node(v->op()) != node(&op) && users[node(v->op())].insert(node(&op)))
          ++waiting[node(&op)];
    }
    using Entry = std::pair<unsigned, Op *>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
    for (Op &op : graph_.ops())
      if (node(&op) == &op && waiting[&op] == 0)
        ready.push({priority(&op), &op});
    llvm::SmallVector<Op *> order;
    while (!ready.empty()) {
      Op *n = ready.top().second;
      ready.pop();
      if (Group *group = groupOf(n))
        order.append(group->ops.begin(), group->ops.end());
      else
        order.push_back(n);
      for (const Op *user : users[n])
        if (--waiting[user] == 0)
          ready.push({priority(user), const_cast<Op *>(user)});
    }
    assert(order.size() == graph_.numOps() && "a fused group is not convex");
    return order;
  }

  void emit(const Group &group) {
    llvm::SetVector<Value *> inputs = inputsOf(group);
    llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
    llvm::SmallVector<Value *> outputs;
    for (Op *op : group.ops) {
      Value *v = op->result();
      bool leaves = graph_.isOutput(v) || llvm::any_of(v->uses(), [&](const Use &u) { return !members.contains(u.op); });
      if (leaves)
        outputs.push_back(v);
    }
    FusedBody body = writeBody(group.ops, inputs.getArrayRef(), outputs);
    Op *last = group.ops.back();
    Builder b(graph_, last);
    b.stampLike(*last);
    Op *fused = b.make(kFused, inputs.getArrayRef(),
                       {{"body", body.text}, {"outputs", body.outputs}, {"dims", Ints(last->result()->type().dims)}})
                    ->op();
    for (auto [i, v] : llvm::enumerate(outputs)) {
      Value *made = fused->result(i);
      made->setBatchMajor(v->batchMajor());
      std::string name = v->name().str();
      graph_.replaceAllUses(v, made);
      graph_.rename(v, "gone");
      graph_.rename(made, name);
    }
    for (Op *op : llvm::reverse(group.ops))
      graph_.erase(op);
  }

  Graph &graph_;
  llvm::DenseMap<const Op *, unsigned> position_;
  llvm::DenseMap<const Op *, unsigned> index_;
  std::vector<std::unique_ptr<Group>> groups_;
};

} // namespace

llvm::Error fuse(Graph &graph, const CompileOptions &) {
  Fuser(graph).run();
  graph.level = Level::Scheduled;
  return llvm::Error::success();
}

} // namespace shardc
