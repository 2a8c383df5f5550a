// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/plan/Check.h"
#include "ir/plan/Peak.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

using namespace llvm;

namespace shardc::check {
namespace {

struct Access {
  Place place;
  Range bytes;
  bool write;
  bool overwritten = false; ///< a read, by the command that puts something else in its place
};

/// Accesses of each buffer in the order of the list, the host's reading of outputs included.
std::vector<std::vector<Access>> collectAccesses(const plan::Plan &plan) {
  std::vector<std::vector<Access>> accesses(plan.buffers_size());
  uint64_t position = 0;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &program = plan.programs(p);
    for (int i = 0; i < program.commands_size(); ++i, ++position) {
      const plan::Command &c = program.commands(i);
      auto add = [&](const plan::Ref &ref, bool write, bool overwritten = false) {
        Range bytes = ref.absent() ? Range() : tiledBytes(plan, ref);
        if (!bytes.empty())
          accesses[ref.buffer()].push_back(
              {{unsigned(p), unsigned(i), position}, bytes, write, overwritten});
      };
      for (int k = 0; k < c.inputs_size(); ++k)
        add(c.inputs(k), /*write=*/false, isOverwritten(c, k));
      if (c.has_workspace())
        add(c.workspace(), /*write=*/true);
      for (const plan::Ref &ref : c.outputs())
        add(ref, /*write=*/true);
    }
    for (const plan::Output &output : plan.outputs())
      if (output.program() == program.name())
        accesses[output.ref().buffer()].push_back(
            {{unsigned(p), 0, position, /*host=*/true}, tiledBytes(plan, output.ref()), false});
  }
  return accesses;
}

class Hazards {
public:
  Hazards(const plan::Plan &plan, const Order &order)
      : plan_(plan), order_(order), accesses_(collectAccesses(plan)), starts_(programStarts(plan)) {
  }

  Error run() {
    for (int b = 0; b < plan_.buffers_size(); ++b) {
      if (Error error = checkLifetime(b))
        return error;
      if (Error error = checkOneBuffer(b))
        return error;
    }
    for (int s = 0; s < plan_.spaces_size(); ++s)
      if (Error error = checkReuse(s))
        return error;
    for (int s = 0; s < plan_.spaces_size(); ++s)
      if (uint64_t bound = findPeak(plan_, s).bytes; plan_.spaces(s).lower_bound() != bound)
        return userError("space " + Twine(s) + ": lower bound: got " +
                         Twine(plan_.spaces(s).lower_bound()) + ", wanted " + Twine(bound));
    return Error::success();
  }

private:
  Error checkLifetime(int b) const {
    const plan::Buffer &buffer = plan_.buffers(b);
    std::string what = describeBuffer(plan_, b);
    std::string life = ("[" + Twine(buffer.first()) + ", " + Twine(buffer.last()) + ")").str();
    if (buffer.first() > buffer.last() || buffer.last() > starts_.back())
      return userError(what + ": lifetime: got " + life + ", wanted at most [0, " +
                       Twine(starts_.back()) + ")");
    if (buffer.persistent())
      return Error::success();
    // Evaluation happens at any time between two steps: what it uses is its own.
    for (int p = 0; p < plan_.programs_size(); ++p)
      if (plan_.programs(p).name() == "eval" && buffer.first() < starts_[p] &&
          buffer.last() > starts_[p])
        return userError(what + ": lifetime " + life + " crosses into eval at " +
                         Twine(starts_[p]));
    // What a repeated micro-step finds must be there when it runs again.
    for (int p = 0; p < plan_.programs_size(); ++p)
      if (runsPerStep(plan_, plan_.programs(p)) > 1 && buffer.first() < starts_[p] &&
          buffer.last() > starts_[p] && buffer.last() < starts_[p + 1])
        return userError(what + ": lifetime " + life + " ends inside " + plan_.programs(p).name() +
                         ", which runs again: wanted at least " + Twine(starts_[p + 1]));
    if (accesses_[b].empty() && buffer.bytes() && buffer.first() < buffer.last())
      return userError(what + ": lifetime " + life + ", but nothing uses it");
    for (const Access &access : accesses_[b]) {
      uint64_t end = access.place.position + !(access.place.host || access.overwritten);
      if (access.place.position < buffer.first() || end > buffer.last())
        return userError(describe(plan_, access.place) + ": uses " + what +
                         " outside its lifetime: got position " + Twine(access.place.position) +
                         ", wanted one in " + life);
    }
    return Error::success();
  }

  /// Accesses of one buffer that conflict must be ordered. On one stream they are.
  Error checkOneBuffer(int b) const {
    ArrayRef<Access> list = accesses_[b];
    if (order_.single() || none_of(list, [](const Access &a) { return a.write; }))
      return Error::success();
    for (size_t j = 0; j < list.size(); ++j)
      for (size_t i = 0; i < j; ++i)
        if ((list[i].write || list[j].write) && list[i].bytes.overlaps(list[j].bytes) &&
            list[i].place.position != list[j].place.position &&
            !order_.before(list[i].place, list[j].place))
          return userError(describe(plan_, list[j].place) + ": " +
                           (list[j].write ? "writes " : "reads ") + describeBuffer(plan_, b) +
                           " without waiting for " + describe(plan_, list[i].place));
    return Error::success();
  }

  /// Buffers in the order in which they begin take over the addresses of those that ended. It is
  /// enough to look at the last owner of each address: happens-before is transitive.
  Error checkReuse(int space) const {
    std::vector<uint32_t> buffers;
    for (int b = 0; b < plan_.buffers_size(); ++b)
      if (plan_.buffers(b).space() == uint32_t(space) && plan_.buffers(b).bytes())
        buffers.push_back(b);
    auto begin = [&](uint32_t b) {
      return plan_.buffers(b).persistent() ? 0 : plan_.buffers(b).first() + 1;
    };
    llvm::stable_sort(buffers, [&](uint32_t a, uint32_t b) { return begin(a) < begin(b); });

    std::map<uint64_t, std::pair<uint64_t, uint32_t>> owners; // begin -> end, buffer; disjoint
    for (uint32_t b : buffers) {
      uint64_t low = plan_.buffers(b).offset(), high = low + plan_.buffers(b).bytes();
      auto it = owners.upper_bound(low);
      if (it != owners.begin() && std::prev(it)->second.first > low)
        --it;
      while (it != owners.end() && it->first < high) {
        auto [end, previous] = it->second;
        uint64_t start = it->first;
        if (Error error = checkTakeOver(previous, b))
          return error;
        it = owners.erase(it);
        if (start < low)
          owners[start] = {low, previous};
        if (end > high) {
          owners[high] = {end, previous};
          break;
        }
      }
      owners[low] = {high, b};
    }
    return Error::success();
  }

  Error checkTakeOver(uint32_t a, uint32_t b) const {
    const plan::Buffer &first = plan_.buffers(a), &second = plan_.buffers(b);
    if (first.persistent() || second.persistent() || first.last() > second.first())
      return userError(describeBuffer(plan_, b) + " overlaps " + describeBuffer(plan_, a) +
                       " in address and time: got bytes [" + Twine(second.offset()) + ", +" +
                       Twine(second.bytes()) + ") and [" + Twine(first.offset()) + ", +" +
                       Twine(first.bytes()) + ")");
    if (order_.single())
      return Error::success();
    for (const Access &later : accesses_[b])
      for (const Access &earlier : accesses_[a])
        if (!order_.before(earlier.place, later.place) &&
            !(earlier.overwritten && earlier.place.position == later.place.position))
          return userError(describe(plan_, later.place) + ": uses " + describeBuffer(plan_, b) +
                           " without waiting for " + describe(plan_, earlier.place) +
                           ", which uses " + describeBuffer(plan_, a) + " at the same address");
    return Error::success();
  }

  const plan::Plan &plan_;
  const Order &order_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<uint64_t> starts_;
};

/// A signal that nobody waits for: a wait was forgotten.
Error checkSignals(const plan::Plan &plan) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    DenseSet<uint32_t> waited;
    for (const plan::Command &c : plan.programs(p).commands())
      waited.insert(c.waits().begin(), c.waits().end());
    for (int i = 0; i < plan.programs(p).commands_size(); ++i)
      for (uint32_t event : plan.programs(p).commands(i).signals())
        if (!waited.contains(event))
          return userError(describe(plan, p, i) + ": signals event " + Twine(event) +
                           ", which nothing waits for");
  }
  return Error::success();
}

} // namespace

Error checkHazards(const plan::Plan &plan) {
  Expected<Order> order = Order::compute(plan);
  if (!order)
    return order.takeError();
  if (Error error = Hazards(plan, *order).run())
    return error;
  return checkSignals(plan);
}

} // namespace shardc::check
