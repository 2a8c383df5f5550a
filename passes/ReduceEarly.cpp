// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "passes/Passes.h"
#include "passes/Timeline.h"
#include <deque>

namespace shardc {
namespace {

/// So many full buckets may be on their way at one time: one that leaves, and one behind it.
constexpr size_t kInFlight = 2;

struct Reduction {
  Op *pack = nullptr; ///< null: something else is reduced
  Op *start = nullptr, *done = nullptr;
  Order users = {};     ///< that need nothing but this result and sources, and views of it: they follow the wait
  size_t ready = 0;     ///< it may start before fixed_[ready]
  bool frees = false;   ///< its full bucket ends with it: it should not stay in flight for longer than it must
  bool started = false, finished = false;
};

bool isReduction(const Op &op) { return op.is(kReduceScatterStart) || op.is(kAllReduceStart); }

/// Does it write over what it reads?
bool inPlace(const Op &start) { return start.is(kAllReduceStart) || start.attrs.getInt("in_place", 0); }

class Scheduler {
public:
  Scheduler(const Order &order, const OpTimes &times) : times_(times), clock_(times), out_(order.size()) {
    find(order);
    for (auto [i, op] : llvm::enumerate(order))
      place_[op] = i;
    for (Reduction &r : reductions_)
      findUsers(r);
    // From here on a place is that among the fixed ops; of others, how many of those came before.
    for (Op *op : order) {
      place_[op] = fixed_.size();
      if (!owner_.count(op))
        fixed_.push_back(op);
    }
    for (Reduction &r : reductions_)
      findReady(r);
  }

  Order run() {
    std::vector<llvm::SmallVector<Reduction *, 1>> ready(fixed_.size() + 1);
    for (Reduction &r : reductions_)
      ready[r.ready].push_back(&r);
    for (size_t i = 0; i <= fixed_.size(); ++i) {
      for (Reduction *r : ready[i])
        start(*r);
      if (i == fixed_.size())
        break;
      append(fixed_[i]);
      while (!inFlight_.empty() && clock_.arrival(*inFlight_.front()->start) <= clock_.now())
        finish(*inFlight_.front());
    }
    for (Reduction *r : startedInOrder_)
      finish(*r);
    return out_.take();
  }

private:
  void find(const Order &order) {
    for (Op *op : order) {
      if (!isReduction(*op))
        continue;
      Op *done = op->result()->hasOneUse() ? op->result()->uses()[0].op : nullptr;
      if (!done || !done->is(kCollectiveDone))
        continue;
      Reduction r{.start = op, .done = done, .frees = !inPlace(*op) && op->is(kReduceScatterStart)};
      Op *from = op->operand(0)->op();
      if (from->is(kPack) && from->result()->hasOneUse())
        r.pack = from;
      for (Op *owned : {r.pack, r.start, r.done})
        if (owned)
          owner_[owned] = reductions_.size();
      reductions_.push_back(std::move(r));
    }
  }

  /// Views of the result, and ops without effects all of whose operands are the result, sources, or what such ops make.
  /// Requires: `order` numbered in place_.
  void findUsers(Reduction &r) {
    size_t index = size_t(&r - reductions_.data());
    auto comesAlong = [&](Value *operand) {
      const Op *root = operand ? rootOf(operand)->op() : nullptr;
      if (!root || isSource(*root))
        return true;
      auto owned = owner_.find(root);
      return owned != owner_.end() && owned->second == index;
    };
    Order work{r.done};
    while (!work.empty()) {
      Op *op = work.back();
      work.pop_back();
      for (unsigned i = 0; i < op->numResults(); ++i)
        for (Use use : op->result(i)->uses()) {
          Op *user = use.op;
          if ((user->def().effect && !isFree(*user)) || owner_.count(user) || !llvm::all_of(user->operands(), comesAlong))
            continue;
          owner_[user] = index;
          r.users.push_back(user);
          work.push_back(user);
        }
    }
    llvm::sort(r.users, [&](Op *a, Op *b) { return place_.lookup(a) < place_.lookup(b); });
  }

  void findReady(Reduction &r) {
    size_t latest = place_.lookup(r.start);
    auto after = [&](Op *op) {
      // What another reduction's result is made into is not there before that one has ended: the start stays.
      size_t place = owner_.count(op) ? latest : place_.lookup(op) + 1;
      r.ready = std::min(latest, std::max(r.ready, place));
    };
    Op *from = r.pack ? r.pack : r.start;
    for (Value *operand : from->operands()) {
      if (!operand)
        continue;
      Value *root = rootOf(operand);
      if (!isSource(*root->op()))
        after(root->op());
      if (inPlace(*r.start)) // all others must have read what it overwrites
        forEachReader(root, [&](Op *reader) {
          if (reader != from)
            after(reader);
        });
    }
  }

  void append(Op *op) {
    if (out_.has(op))
      return;
    out_.add(op, [&](Op *missing) {
      auto owned = owner_.find(missing);
      assert(owned != owner_.end() && reductions_[owned->second].started && "an operand comes after its use");
      finish(reductions_[owned->second]);
    });
    clock_.run(*op);
  }

  void start(Reduction &r) {
    while (r.frees && inFlight_.size() >= kInFlight)
      finish(*inFlight_.front());
    if (r.pack)
      append(r.pack);
    append(r.start);
    r.started = true;
    startedInOrder_.push_back(&r);
    if (r.frees)
      inFlight_.push_back(&r);
  }

  void finish(Reduction &r) {
    if (r.finished)
      return;
    r.finished = true;
    std::erase(inFlight_, &r);
    append(r.done);
    for (Op *user : r.users)
      append(user);
  }

  const OpTimes &times_;
  std::vector<Reduction> reductions_;
  llvm::DenseMap<const Op *, size_t> owner_; ///< pack, start, done, users: of which reduction
  Order fixed_;                              ///< all other ops
  llvm::DenseMap<const Op *, size_t> place_;
  Clock clock_;
  OrderBuilder out_;
  std::vector<Reduction *> startedInOrder_;
  std::deque<Reduction *> inFlight_; ///< of those that free a bucket, oldest first
};

} // namespace

Order reductionsEarly(const Order &order, const OpTimes &times) { return Scheduler(order, times).run(); }

llvm::Error reduceEarly(Graph &graph, const CompileOptions &options) {
  auto machine = loadMachine(options.machine);
  if (!machine)
    return machine.takeError();
  OpTimes times(graph, *machine);
  applyOrder(graph, reductionsEarly(orderOf(graph), times));
  return llvm::Error::success();
}

} // namespace shardc
