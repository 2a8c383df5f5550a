// SPDX-License-Identifier: Apache-2.0
// List scheduling that aims at a limit on live bytes and else keeps the order that it is given:
// - what makes more bytes live waits, until it is needed, while a moment lies before its first use at which
// the
//   given order is above the limit; a collective's start and a pack may wait for operands that wait;
// - what only frees memory runs as soon as it can if such a moment lies before its own place;
// - where what must run does not fit, reductions that are on their way are waited for.
// What computes stays in its phase, and each kind of collective in its order. Linear but for those that wait
// at one time.
#pragma once

#include "passes/Order.h"
#include "passes/memory/LiveBytes.h"
#include "passes/memory/RangeMaximum.h"

namespace shardc {

class LimitedOrder {
public:
  /// Requires: `given` is an order of the graph's ops that its values permit. `live` is used while this
  /// lives.
  LimitedOrder(const Graph &graph, const Order &given, LiveBytes &live);

  /// Of the given order: the largest sum of live bytes.
  uint64_t givenPeak() const { return profile_.of(0, list_.size()); }
  /// What lives before or behind the whole program: no order has less.
  uint64_t floor() const { return floor_; }
  bool hasCollectives() const { return !lastStart_.empty(); }
  /// Makes an order; says the largest sum of its live bytes, which may exceed the limit. `collectives`:
  /// gathers may start later, and reductions be waited for earlier, too.
  uint64_t schedule(uint64_t limit, bool collectives);
  /// The order that was made. Sources and views stay where they are, if what they read allows.
  Order made() const;
  /// The same without sources and views.
  const Order &madeCommands() const { return scheduled_; }

private:
  void need(unsigned i, const Op *before);
  void needReaders(unsigned i, Value *overwritten);
  void findNeeds(unsigned i);
  void keepStates(const Graph &graph);
  bool addsTo(unsigned user, unsigned i) const;
  void findFirstUses();

  bool isReady(unsigned i) const;
  bool fits(unsigned i, unsigned at) const;
  bool mayWait(unsigned i) const;
  void visit(unsigned i);
  void runWaiting(unsigned at);
  void endPhasesBefore(Phase phase);
  void force(unsigned i, unsigned at);
  void run(unsigned i, unsigned at);

  // Indices are places in the given order, sources and views left out.
  const Order &given_;
  const Order list_;
  LiveBytes &live_;
  const RangeMaximum profile_; ///< of the given order: bytes that live while an op runs
  uint64_t floor_ = 0;
  llvm::DenseMap<const Op *, unsigned> index_;
  llvm::DenseMap<const OpDef *, unsigned> lastStart_;
  std::vector<llvm::SmallVector<unsigned, 4>> needs_, users_; ///< what must run before, and behind
  std::vector<unsigned> firstUse_; ///< the first that computes with it, or waits for it; the end if none does

  uint64_t limit_ = 0, peak_ = 0;
  bool collectives_ = false;
  Order scheduled_;
  std::vector<bool> ran_;
  std::vector<unsigned> waiting_;  ///< in the given order
  std::vector<unsigned> onTheWay_; ///< waits of reductions that have started
};

/// Bytes that live while each op of the list runs.
std::vector<uint64_t> liveProfile(const Order &order, LiveBytes &live);

} // namespace shardc
