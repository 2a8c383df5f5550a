// SPDX-License-Identifier: Apache-2.0
// When each op of a list would run: one resource computes in list order, one carries collectives first come, first served.
// A collective begins when computing has come to its start and the link is free; its done waits until it has arrived. Computing
// is slower while the link is busy (`overlapSlowdown`). Times in microseconds from the beginning of the list.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "passes/Machine.h"
#include "passes/Order.h"

namespace shardc {

/// Work of one op: by its formula, or operands read and results written once. Views and sources: none.
Cost costOf(const Op &op);
/// Predicted time of one op by itself: a kernel, or a collective on the link. Sources, views, packs, waits: 0.
double microseconds(const Op &op, const Machine &machine);

/// `microseconds` of every op of a graph, asked once.
class OpTimes {
public:
  OpTimes(const Graph &graph, const Machine &machine);
  double of(const Op &op) const { return times_.lookup(&op); }
  double slowdown() const { return slowdown_; }

private:
  double slowdown_;
  llvm::DenseMap<const Op *, double> times_;
};

struct Span {
  double start = 0, end = 0;
};

/// The two resources, fed op by op in list order.
class Clock {
public:
  explicit Clock(const OpTimes &times) : times_(times) {}
  /// When the op runs. Of a start: on the link. Of a done: from when computing comes to it until it may go on.
  Span run(const Op &op);
  double now() const { return compute_; }
  /// When what was started arrives. Requires: it ran.
  double arrival(const Op &start) const { return arrivals_.lookup(&start); }
  double linkFree() const { return link_; }

private:
  const OpTimes &times_;
  double compute_ = 0, link_ = 0;
  llvm::DenseMap<const Op *, double> arrivals_;
};

struct Timeline {
  std::vector<Span> spans; ///< in list order
  double total = 0;        ///< until computing and link have ended
  double compute = 0;      ///< without any wait, nothing beside it
  double exposed() const { return total - compute; }
};
Timeline simulate(const Order &order, const OpTimes &times);

/// What the plan says of a program, in milliseconds: what communication adds to computing, as the graph stands and if every gather were
/// started where it is needed.
struct Exposed {
  double ms = 0, withoutPrefetchMs = 0, totalMs = 0;
};
Exposed exposedMs(const Graph &graph, const Machine &machine);

} // namespace shardc
