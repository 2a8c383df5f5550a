// SPDX-License-Identifier: Apache-2.0
// Tries limits on live bytes, from the top, and keeps the order that needs least. Each is judged as a whole:
// by the bytes that live, as emission will place them, and by the time that it takes.
// A limit holds for what computes alone, or for collectives too. Each starts where the other has ended, and
// which of them comes first decides where both end: so both are tried.
#include "ir/base/Error.h"
#include "passes/LimitedOrder.h"
#include "passes/Passes.h"
#include "passes/Timeline.h"

namespace shardc {
namespace {

/// Limits are tried in steps of one part in so many of the peak, until so many in a row have not helped; then
/// halves of a step.
constexpr unsigned kParts = 32, kPatience = 3, kHalves = 4;
/// So often limits are tried, every second time with collectives, while one of two in a row helps.
constexpr unsigned kTurns = 4;
/// An order must not take longer if the link is so many times slower than predicted, either.
constexpr double kSlowLink = 2;

class Search {
public:
  Search(Graph &graph, const Machine &machine, const CompileOptions &options)
      : graph_(graph), live_(graph, options), times_(graph, machine), slowTimes_(graph, slowLink(machine)),
        best_(orderOf(graph)), prefetchLimit_(options.prefetchLimit.value_or(defaultPrefetchLimit(best_))),
        time_(simulate(best_, times_).total), slowTime_(simulate(best_, slowTimes_).total) {}

  Order run() {
    Order given = best_, first = follow(/*collectives=*/false);
    const uint64_t firstPeak = peak_;
    if (!hasCollectives_)
      return first;
    best_ = std::move(given);
    Order second = follow(/*collectives=*/true);
    return firstPeak <= peak_ ? first : second;
  }

private:
  static Machine slowLink(Machine machine) {
    machine.linkBandwidth /= kSlowLink;
    machine.linkLatencyUs *= kSlowLink;
    return machine;
  }

  /// From the best order so far, beginning with or without collectives.
  Order follow(bool collectives) {
    for (unsigned turn = 0, failed = 0; turn < kTurns && failed < 2; ++turn, collectives = !collectives)
      failed = tryLimits(collectives) ? 0 : failed + 1;
    return std::move(best_);
  }

  /// From the best order so far. Is there a better one now?
  bool tryLimits(bool collectives) {
    const Order given = best_;
    LimitedOrder limited(graph_, given, live_);
    const uint64_t givenPeak = peak_ = limited.givenPeak();
    hasCollectives_ = limited.hasCollectives();
    if (collectives && !hasCollectives_)
      return false;
    auto helps = [&](uint64_t limit) {
      const uint64_t before = peak_, reached = limited.schedule(limit, collectives);
      if (reached < peak_ && !consider(limited.made(), reached))
        tryPrefetch(limited.made());
      return peak_ < before;
    };
    const uint64_t step = peak_ / kParts;
    uint64_t limit = peak_;
    for (unsigned failed = 0; failed < kPatience && limit > limited.floor() + step;) {
      limit -= step;
      failed = helps(limit) ? 0 : failed + 1;
    }
    uint64_t low = peak_ - step;
    for (unsigned i = 0; i < kHalves && peak_ > limited.floor(); ++i) {
      limit = low + (peak_ - low) / 2;
      if (!helps(limit))
        low = limit;
    }
    return peak_ < givenPeak;
  }

  /// Gathers and reductions where they are best for what computes.
  void tryPrefetch(const Order &order) {
    if (!hasCollectives_)
      return;
    Order whole = reductionsEarly(gathersEarly(order, times_, prefetchLimit_), times_);
    const uint64_t peak = *llvm::max_element(liveProfile(whole, live_));
    consider(std::move(whole), peak);
  }

  bool consider(Order order, uint64_t peak) {
    if (peak >= peak_ || !takesNoLonger(order))
      return false;
    best_ = std::move(order);
    peak_ = peak;
    return true;
  }

  bool takesNoLonger(const Order &order) const {
    constexpr double kRounding = 1 + 1e-9;
    return !hasCollectives_ || (simulate(order, times_).total <= time_ * kRounding &&
                                simulate(order, slowTimes_).total <= slowTime_ * kRounding);
  }

  const Graph &graph_;
  LiveBytes live_;
  const OpTimes times_, slowTimes_;
  Order best_;
  uint64_t peak_ = 0; ///< of the best
  const uint64_t prefetchLimit_;
  const double time_, slowTime_; ///< of the order that was there
  bool hasCollectives_ = false;
};

} // namespace

llvm::Error peakOrder(Graph &graph, const CompileOptions &options) {
  auto machine = loadMachine(options.machine);
  if (!machine)
    return machine.takeError();
  if (graph.numOps())
    applyOrder(graph, Search(graph, *machine, options).run());
  return llvm::Error::success();
}

} // namespace shardc
