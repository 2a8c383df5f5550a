// SPDX-License-Identifier: Apache-2.0
// Tries limits on live bytes, from the top, and keeps the order that needs least. Each is judged as a whole:
// by the bytes that live, as emission will place them, and by the time that it takes.
#include "ir/base/Error.h"
#include "passes/LimitedOrder.h"
#include "passes/Passes.h"
#include "passes/Timeline.h"

namespace shardc {
namespace {

/// Limits are tried in steps of one part in so many of the peak, until so many in a row have not helped; then
/// halves of a step.
constexpr unsigned kParts = 32, kPatience = 4, kHalves = 5;
/// An order must not take longer if the link is so many times slower than predicted, either.
constexpr double kSlowLink = 2;

class Search {
public:
  Search(const Graph &graph, const Machine &machine, const CompileOptions &options)
      : given_(orderOf(const_cast<Graph &>(graph))), live_(graph, options), limited_(graph, given_, live_),
        times_(graph, machine), slowTimes_(graph, slowLink(machine)), time_(simulate(given_, times_).total),
        slowTime_(simulate(given_, slowTimes_).total), best_(given_), peak_(limited_.givenPeak()) {}

  Order run() {
    const uint64_t step = peak_ / kParts;
    uint64_t high = peak_;
    for (unsigned failed = 0; failed < kPatience && high > limited_.floor() + step; high -= step) {
      failed = improves(high - step) ? 0 : failed + 1;
    }
    uint64_t low = peak_ > step ? peak_ - step : 0;
    for (unsigned i = 0; i < kHalves && low < peak_ && peak_ > limited_.floor(); ++i) {
      uint64_t limit = low + (peak_ - low) / 2;
      if (!improves(limit))
        low = limit;
    }
    return std::move(best_);
  }

private:
  static Machine slowLink(Machine machine) {
    machine.linkBandwidth /= kSlowLink;
    machine.linkLatencyUs *= kSlowLink;
    return machine;
  }

  bool improves(uint64_t limit) {
    const uint64_t before = peak_;
    for (bool collectives : {false, true}) {
      if (collectives && !limited_.hasCollectives())
        break;
      Order order = limited_.schedule(limit, collectives);
      Order early = limited_.hasCollectives() ? reductionsEarly(order, times_) : Order();
      consider(std::move(order));
      consider(std::move(early));
    }
    return peak_ < before;
  }

  void consider(Order order) {
    if (order.empty())
      return;
    const uint64_t peak = *llvm::max_element(liveProfile(order, live_));
    constexpr double kRounding = 1 + 1e-9;
    if (peak < peak_ && simulate(order, times_).total <= time_ * kRounding &&
        simulate(order, slowTimes_).total <= slowTime_ * kRounding) {
      best_ = std::move(order);
      peak_ = peak;
    }
  }

  const Order given_;
  LiveBytes live_;
  LimitedOrder limited_;
  const OpTimes times_, slowTimes_;
  const double time_, slowTime_; ///< of the given order
  Order best_;
  uint64_t peak_; ///< of the best
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
