// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "passes/FusedGroup.h"
#include "passes/Passes.h"
#include <queue>

namespace shardc {
namespace {

constexpr unsigned kMaxOps = 48, kMaxInputs = 12, kMaxVisits = 4096;

/// Grows groups along producer-consumer edges, in program order: pointwise ops, and ops over the same rows. A group stays
/// convex: no path leaves it and comes back, so that one op can stand for it.
class Fuser {
public:
  explicit Fuser(Graph &graph) : graph_(graph) {
    for (Op &op : graph.ops())
      position_[&op] = position_.size();
  }

  void run() {
    readNarrow();
    for (Op &op : graph_.ops())
      if (std::optional<RowForm> form = rowFormOf(op))
        forms_[&op] = std::move(*form);
    for (auto &[op, form] : forms_)
      for (auto [i, kind] : llvm::enumerate(form.results))
        if (kind == RowKind::Column)
          for (Op *link : tailOf(op->result(i)).chain)
            tails_.insert(link);
    for (Op &op : graph_.ops())
      if ((op.def().scalar && !tails_.contains(&op)) || forms_.count(&op))
        place(op);
    for (auto &group : groups_)
      if (group && isPlain(*group)) {
        for (Op *op : group->ops)
          index_.erase(op);
        group = nullptr;
      }
    llvm::SmallVector<Op *> order = sorted();
    for (Op *op : order)
      graph_.moveBefore(op, nullptr);
    for (auto &group : groups_)
      if (group)
        emitGroup(graph_, *group);
    joinColumnSums(graph_);
  }

private:
  /// Lets members read 16-bit values themselves: expressions widen them. What only widened then is gone.
  void readNarrow() {
    for (Op &op : graph_.ops()) {
      std::optional<RowForm> form = rowFormOf(op);
      if (!op.def().scalar && !(form && (!op.attrs.has("axes") || form->isColumns())))
        continue;
      for (unsigned i = 0; i < op.numOperands(); ++i)
        if (Value *v = op.operand(i); v && v->op()->is(kCast) && v->type().dtype == DType::F32 && isHalf(v->op()->operand(0)->type().dtype))
          op.setOperand(i, v->op()->operand(0));
    }
    for (auto it = graph_.ops().begin(); it != graph_.ops().end();)
      if (Op &op = *it++; op.is(kCast) && !op.hasUses() && !graph_.isOutput(op.result()))
        graph_.erase(&op);
  }

  FusedGroup *groupOf(const Op *op) const {
    auto found = index_.find(op);
    return found == index_.end() ? nullptr : groups_[found->second].get();
  }

  void place(Op &op) {
    unsigned own = groups_.size();
    groups_.push_back(std::make_unique<FusedGroup>());
    FusedGroup &group = *groups_.back();
    group.ops.push_back(&op);
    group.first = group.last = group.due = position_[&op];
    if (const RowForm *form = formOf(op)) {
      group.dims = form->dims;
      group.axis = form->axis;
      if (form->isColumns())
        group.due = 0;
    } else {
      group.dims = op.result()->type().dims;
    }
    index_[&op] = own;
    for (Value *operand : op.operands())
      if (FusedGroup *other = operand ? groupOf(operand->op()) : nullptr)
        tryMerge(own, *other);
  }

  void tryMerge(unsigned own, FusedGroup &other) {
    FusedGroup &group = *groups_[own];
    if (&group == &other || other.ops[0]->phase != group.ops[0]->phase ||
        other.dims != group.dims || (group.axis >= 0 && other.axis >= 0 && group.axis != other.axis) ||
        group.ops.size() + other.ops.size() > kMaxOps)
      return;
    FusedGroup merged = other;
    merged.ops.append(group.ops.begin(), group.ops.end());
    llvm::sort(merged.ops, [&](Op *a, Op *b) { return position_[a] < position_[b]; });
    merged.axis = std::max(group.axis, other.axis);
    merged.first = std::min(group.first, other.first);
    merged.last = std::max(group.last, other.last);
    merged.due = std::max(group.due, other.due);
    if (inputsOf(merged).size() > kMaxInputs || !fits(merged) || !convex(merged))
      return;
    unsigned gone = index_[other.ops[0]];
    for (Op *op : merged.ops)
      index_[op] = own;
    group = std::move(merged);
    groups_[gone] = nullptr;
  }

  const RowForm *formOf(const Op &op) const {
    auto found = forms_.find(const_cast<Op *>(&op));
    return found == forms_.end() ? nullptr : &found->second;
  }

  /// Does every member read what another makes as the program of the group can give it?
  bool fits(const FusedGroup &group) const {
    if (group.axis < 0)
      return true;
    llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
    for (const Op *op : group.ops)
      for (unsigned i = 0; i < op->numOperands(); ++i) {
        const Value *v = op->operand(i);
        if (!v || !members.contains(v->op()))
          continue;
        const RowForm *maker = formOf(*v->op());
        if (kindOf(v) == RowKind::Element ? v->type().dims != group.dims
                                          : kindOf(v) == RowKind::Column || !op->def().scalar || v->type().dims != maker->perRow())
          return false;
      }
    return true;
  }

  /// A sum over the elements of rows alone has a kernel that does it as well.
  bool isPlain(const FusedGroup &group) const {
    const RowForm *form = formOf(*group.ops[0]);
    return group.ops.size() == 1 && form && group.ops[0]->attrs.has("axes") && !form->isColumns();
  }

  /// Walks upwards from the group's inputs, other groups as one node each; false if it meets the group again.
  bool convex(const FusedGroup &group) const {
    llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
    llvm::DenseSet<const Op *> seen;
    llvm::SmallVector<const Op *> stack;
    auto push = [&](const Op *op) {
      if (!seen.insert(op).second)
        return;
      const FusedGroup *other = groupOf(op);
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
      auto pushOperands = [&](const Op *member, const FusedGroup *own) {
        for (Value *v : member->operands())
          if (v && (!own || groupOf(v->op()) != own))
            push(v->op());
      };
      if (const FusedGroup *other = groupOf(op))
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
      const FusedGroup *group = groupOf(op);
      return group ? group->ops[0] : op;
    };
    auto priority = [&](const Op *n) { return groupOf(n) ? groupOf(n)->due : position_[n]; };
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
      if (FusedGroup *group = groupOf(n))
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

  Graph &graph_;
  llvm::DenseMap<const Op *, unsigned> position_;
  llvm::DenseMap<const Op *, unsigned> index_;
  std::vector<std::unique_ptr<FusedGroup>> groups_;
  llvm::MapVector<Op *, RowForm> forms_;  ///< of ops over rows
  llvm::DenseSet<const Op *> tails_;      ///< what follows sums of columns, and goes with them
};

} // namespace

llvm::Error fuse(Graph &graph, const CompileOptions &) {
  Fuser(graph).run();
  graph.level = Level::Scheduled;
  return llvm::Error::success();
}

} // namespace shardc
