// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/plan/Check.h"
#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace shardc::check {

Expected<Order> Order::compute(const plan::Plan &plan) {
  Order order;
  unsigned streams = 1;
  uint64_t commands = 0;
  for (const plan::Program &program : plan.programs()) {
    commands += program.commands_size();
    for (const plan::Command &c : program.commands())
      streams = std::max(streams, c.stream() + 1);
  }
  order.numStreams_ = streams;
  order.streams_.reserve(commands);
  order.clocks_.assign(commands * streams, 0);

  // A command knows what its predecessor on the stream knew, and what the signals it waits for
  // knew.
  uint64_t position = 0;
  for (int p = 0; p < plan.programs_size(); ++p) {
    std::vector<uint32_t> latest(streams * streams, 0); // clock of the last command of each stream
    DenseMap<uint32_t, uint64_t> signalled;             // event -> position
    for (int i = 0; i < plan.programs(p).commands_size(); ++i, ++position) {
      const plan::Command &c = plan.programs(p).commands(i);
      unsigned stream = c.stream();
      uint32_t *clock = &order.clocks_[position * streams];
      std::copy_n(&latest[stream * streams], streams, clock);
      for (uint32_t event : c.waits()) {
        auto signal = signalled.find(event);
        if (signal == signalled.end())
          return userError(describe(plan, p, i) + ": waits for event " + Twine(event) +
                           ", which nothing before it signals");
        const uint32_t *theirs = &order.clocks_[signal->second * streams];
        for (unsigned s = 0; s < streams; ++s)
          clock[s] = std::max(clock[s], theirs[s]);
      }
      ++clock[stream];
      std::copy_n(clock, streams, &latest[stream * streams]);
      order.streams_.push_back(uint8_t(stream));
      for (uint32_t event : c.signals())
        if (!signalled.try_emplace(event, position).second)
          return userError(describe(plan, p, i) + ": signals event " + Twine(event) +
                           ", which is signalled already");
    }
  }
  return order;
}

bool Order::before(const Place &a, const Place &b) const {
  if (a.program != b.program)
    return a.program < b.program;
  if (a.host || b.host)
    return !a.host && b.host;
  unsigned stream = streams_[a.position];
  return a.position != b.position &&
         clocks_[b.position * numStreams_ + stream] >= clocks_[a.position * numStreams_ + stream];
}

} // namespace shardc::check
