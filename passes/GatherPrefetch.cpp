// SPDX-License-Identifier: Apache-2.0
// For a fixed order of computing and one link served first come, first served, starting every gather as early as memory permits is
// optimal: an earlier start never delays the gathers behind it. What is left is to give back the memory of those that came too early.
#include "ir/base/Error.h"
#include "passes/Passes.h"
#include "passes/Timeline.h"

namespace shardc {
namespace {

/// A gather should arrive in time even if it takes so many times longer than predicted.
constexpr double kSafety = 2;

/// Positions count the ops of the list without the gathers' starts; a gather at p starts before op p.
struct Gather {
  Op *start = nullptr, *done = nullptr;
  uint64_t bytes = 0;      ///< of memory that it holds from its start to the last use
  size_t ready = 0;        ///< no earlier: its operands
  size_t needed = 0;       ///< position of its wait
  size_t last = 0;         ///< of the last use
  size_t earliest = 0;     ///< where memory lets it start
  size_t place = 0;        ///< where it starts
  double arrived = 0;      ///< when its wait ends if all start as early as they can
};

bool hasReaders(const Value *value) {
  bool found = false;
  forEachReader(value, [&](Op *) { found = true; });
  return found;
}

/// Of memory of its own: a gather may also write over what lives anyway.
uint64_t gatheredBytes(const Op &start) { return start.operand(1) ? 0 : uint64_t(start.result()->type().numBytes()); }

class Prefetcher {
public:
  Prefetcher(const Order &order, const OpTimes &times) : times_(times) {
    for (Op *op : order)
      if (op->is(kCollectiveDone) && op->operand(0)->op()->is(kAllGatherStart)) {
        Gather gather{.start = op->operand(0)->op(), .done = op};
        // What nothing reads here (parameters after their update) goes as early, and is waited for as late, as it can.
        (hasReaders(op->result()) ? gathers_ : behind_).push_back(gather);
      }
    llvm::DenseSet<const Op *> moved;
    for (Gather &g : gathers_)
      moved.insert(g.start);
    for (Gather &g : behind_) {
      moved.insert(g.start);
      moved.insert(g.done);
      noteViews(g.done->result(), moved);
    }
    for (Op *op : order)
      if (!moved.contains(op)) {
        position_[op] = list_.size();
        list_.push_back(op);
      }
    for (Gather &g : gathers_)
      measure(g);
    for (Gather &g : behind_)
      g.place = readyPlace(g);
  }

  Order run(uint64_t limit) {
    startEarly(limit);
    Order early = build();
    if (gathers_.empty())
      return early;
    // Reductions will be started early too: the link is theirs as well.
    Order whole = reductionsEarly(early, times_);
    Timeline timeline = simulate(whole, times_);
    noteTimes(whole, timeline);
    for (double safety = kSafety; safety <= 8 * kSafety; safety *= 2) {
      startLate(timeline.total, safety);
      Order late = build();
      if (simulate(reductionsEarly(late, times_), times_).total <= timeline.total * (1 + 1e-9))
        return late;
    }
    return early;
  }

private:
  /// Views that only the host reads, if anybody.
  void noteViews(const Value *value, llvm::DenseSet<const Op *> &moved) {
    for (Use use : value->uses())
      if (moved.insert(use.op).second) {
        behindViews_.push_back(use.op);
        noteViews(use.op->result(), moved);
      }
  }

  size_t readyPlace(const Gather &g) const {
    size_t ready = 0;
    auto after = [&](const Op *op) {
      auto at = position_.find(op);
      if (at != position_.end() && !isFree(*op))
        ready = std::max(ready, at->second + 1);
    };
    for (Value *operand : g.start->operands())
      if (operand)
        after(rootOf(operand)->op());
    if (Value *into = g.start->operand(1)) // all others must have read what it overwrites
      forEachReader(rootOf(into), [&](Op *reader) {
        if (reader != g.start)
          after(reader);
      });
    return ready;
  }

  void measure(Gather &g) const {
    g.needed = g.last = position_.lookup(g.done);
    g.ready = std::min(readyPlace(g), g.needed);
    g.bytes = gatheredBytes(*g.start);
    noteUses(g.done->result(), g.last);
  }

  void noteUses(const Value *value, size_t &last) const {
    forEachReader(value, [&](Op *reader) { last = std::max(last, position_.lookup(reader)); });
    if (isRead(value))
      last = list_.size();
  }

  /// Does the host read it, or a view of it?
  static bool isRead(const Value *value) {
    return value->op()->graph().isOutput(value) || llvm::any_of(value->uses(), [](Use use) {
             return isFree(*use.op) && isRead(use.op->result());
           });
  }

  void startEarly(uint64_t limit) {
    std::vector<uint64_t> resident(list_.size() + 1, 0); ///< by position, of the gathers so far
    size_t before = 0;
    for (Gather &g : gathers_) {
      size_t least = std::max(before, g.ready);
      g.place = g.needed;
      while (g.place > least && g.bytes <= limit && resident[g.place - 1] <= limit - g.bytes)
        --g.place;
      before = g.earliest = g.place;
      for (size_t q = g.place; q <= std::min(g.last, list_.size()); ++q)
        resident[q] += g.bytes;
    }
  }

  void noteTimes(const Order &whole, const Timeline &timeline) {
    llvm::DenseMap<const Op *, Span> spans;
    for (auto [op, span] : llvm::zip(whole, timeline.spans))
      spans[op] = span;
    double now = 0;
    for (const Op *op : list_) {
      reached_.push_back(now);
      if (op->def().collective != Collective::Start)
        now = std::max(now, spans.lookup(op).end);
    }
    for (Gather &g : gathers_)
      g.arrived = spans.lookup(g.done).end;
  }

  /// From the last to the first: the latest place from which it still arrives before it is waited for and before the link is
  /// wanted by the next one.
  void startLate(double deadline, double safety) {
    for (Gather &g : llvm::reverse(gathers_)) {
      deadline = std::min(deadline, g.arrived) - safety * times_.of(*g.start);
      size_t after = size_t(llvm::upper_bound(reached_, deadline) - reached_.begin());
      g.place = std::max(g.earliest, std::min(after ? after - 1 : 0, g.needed));
    }
  }

  Order build() const {
    OrderBuilder out(list_.size() + gathers_.size() + 2 * behind_.size());
    auto next = gathers_.begin();
    size_t nextBehind = 0;
    for (size_t p = 0; p <= list_.size(); ++p) {
      // Between sources and views nothing runs: the start stands behind them, next to what does.
      bool runs = p == list_.size() || !isFree(*list_[p]);
      for (; runs && next != gathers_.end() && next->place <= p; ++next)
        out.add(next->start);
      for (; nextBehind < behind_.size() && behind_[nextBehind].place <= p; ++nextBehind)
        out.add(behind_[nextBehind].start);
      if (p < list_.size())
        out.add(list_[p]);
    }
    for (const Gather &g : behind_)
      out.add(g.done);
    for (Op *view : behindViews_)
      out.add(view);
    return out.take();
  }

  const OpTimes &times_;
  std::vector<Gather> gathers_; ///< in order of their first uses
  std::vector<Gather> behind_;
  Order behindViews_;
  Order list_;
  llvm::DenseMap<const Op *, size_t> position_; ///< in list_
  std::vector<double> reached_; ///< by position: when computing comes there if all start as early as they can
};

} // namespace

uint64_t defaultPrefetchLimit(const Order &order) {
  uint64_t limit = 0, before = 0;
  for (const Op *op : order)
    if (op->is(kCollectiveDone) && op->operand(0)->op()->is(kAllGatherStart) && hasReaders(op->result())) {
      uint64_t bytes = gatheredBytes(*op->operand(0)->op());
      limit = std::max(limit, bytes + before);
      before = bytes;
    }
  return limit;
}

Order gathersEarly(const Order &order, const OpTimes &times, uint64_t limit) {
  return Prefetcher(order, times).run(limit);
}

llvm::Error gatherPrefetch(Graph &graph, const CompileOptions &options) {
  auto machine = loadMachine(options.machine);
  if (!machine)
    return machine.takeError();
  OpTimes times(graph, *machine);
  Order order = orderOf(graph);
  applyOrder(graph, gathersEarly(order, times, options.prefetchLimit.value_or(defaultPrefetchLimit(order))));
  return llvm::Error::success();
}

} // namespace shardc
