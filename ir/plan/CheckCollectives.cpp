// SPDX-License-Identifier: Apache-2.0
// Collectives: what they work on, and that all ranks meet in them. All ranks run one command list,
// so that an order that holds under happens-before is the same everywhere.
#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include "ir/plan/Check.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

using namespace llvm;

namespace shardc::check {
namespace {

bool isFlat(const plan::Ref &ref) {
  return ref.dims_size() == 1 && (!ref.strides_size() || ref.strides(0) == 1 || ref.dims(0) <= 1);
}

class Operands {
public:
  Operands(const plan::Plan &plan, const plan::Command &command, unsigned p, unsigned index)
      : plan_(plan), c_(command), p_(p), index_(index) {}

  Error check() const {
    int most = isGather(c_) ? 2 : 1;
    if (c_.inputs_size() < 1 || c_.inputs_size() > most || c_.outputs_size() != 1 ||
        c_.inputs(0).absent() || (c_.has_workspace() && !c_.workspace().absent()))
      return fail("operands: got " + Twine(c_.inputs_size()) + " inputs and " +
                  Twine(c_.outputs_size()) + " outputs, wanted " + Twine(most) + " and 1");
    if (int64_t ranks = number("ranks", 0); ranks != int64_t(plan_.ranks()))
      return fail("attribute 'ranks': got " + Twine(ranks) + ", wanted " + Twine(plan_.ranks()));
    const plan::Ref &in = c_.inputs(0), &out = c_.outputs(0);
    const plan::Attr *to = findAttr(c_.attrs(), "to"); // a gather that rounds
    DType dtype = DType(out.dtype());
    bool rounds = isGather(c_) && to;
    if (rounds && (!isHalf(dtype) || toString(dtype) != to->s()))
      return fail("attribute 'to': got '" + to->s() + "', wanted the 16-bit type of the result");
    if (!isFlat(in) || !isFlat(out) || DType(in.dtype()) != (rounds ? wideType(dtype) : dtype))
      return fail("operands: wanted flat arrays of one element type");
    return isGather(c_)          ? checkGather(in, out)
           : isReduceScatter(c_) ? checkReduction(in, out)
                                 : checkSum(in, out);
  }

private:
  Error fail(const Twine &what) const {
    return userError(describe(plan_, p_, index_) + ": " + what);
  }
  int64_t number(StringRef name, int64_t otherwise) const {
    const plan::Attr *attr = findAttr(c_.attrs(), name);
    return attr && attr->value_case() == plan::Attr::kI ? attr->i() : otherwise;
  }
  uint32_t overwritten() const { return c_.in_place_size() ? c_.in_place(0) : 0; }

  Error checkSizes(int64_t slice, int64_t whole) const {
    if (slice <= INT64_MAX / int64_t(plan_.ranks()) && slice * int64_t(plan_.ranks()) == whole)
      return Error::success();
    return fail("sizes: got a slice of " + Twine(slice) + " elements and " + Twine(whole) +
                " in all, for " + Twine(plan_.ranks()) + " ranks");
  }

  Error checkGather(const plan::Ref &slice, const plan::Ref &whole) const {
    if (Error error = checkSizes(slice.dims(0), whole.dims(0)))
      return error;
    bool into = c_.inputs_size() > 1 && !c_.inputs(1).absent();
    if (overwritten() != (into ? 2 : 0))
      return fail("in_place: got " + Twine(overwritten()) + ", wanted " + Twine(into ? 2 : 0));
    if (whole.rank_stride() || (slice.rank_stride() && !isSliceOf(plan_, slice, whole)))
      return fail("wanted to send an array of its own, or slice r of what it gathers");
    return Error::success();
  }

  Error checkReduction(const plan::Ref &whole, const plan::Ref &slice) const {
    if (Error error = checkSizes(slice.dims(0), whole.dims(0)))
      return error;
    bool inside = number("in_place", 0) != 0;
    if (overwritten())
      return fail("in_place: got " + Twine(overwritten()) + ", wanted none");
    if (whole.rank_stride() ||
        (inside ? !isSliceOf(plan_, slice, whole) : slice.rank_stride() != 0))
      return fail(inside ? "wanted slice r of what it adds up, as attribute 'in_place' says"
                         : "wanted an array of its own for the sum");
    return Error::success();
  }

  Error checkSum(const plan::Ref &in, const plan::Ref &out) const {
    if (overwritten() != 1 || in.rank_stride() || !sameLayout(plan_, in, out))
      return fail("wanted the sum over what it adds up");
    return Error::success();
  }

  const plan::Plan &plan_;
  const plan::Command &c_;
  unsigned p_, index_;
};

/// Starts, their events and their dones in one program.
class Meetings {
public:
  Meetings(const plan::Plan &plan, const Order &order, unsigned p, uint64_t start)
      : plan_(plan), order_(order), commands_(plan.programs(p).commands()), p_(p), start_(start) {}

  Error check() {
    for (int i = 0; i < commands_.size(); ++i)
      if (Error error = isStart(commands_[i])  ? begin(i)
                        : isDone(commands_[i]) ? end(i)
                                               : checkWaits(i))
        return error;
    if (!starts_.empty())
      return fail(starts_.begin()->second, "no collective_done waits for it");
    return Error::success();
  }

private:
  Error fail(int index, const Twine &what) const {
    return userError(describe(plan_, p_, index) + ": " + what);
  }

  Error checkWaits(int i) const {
    for (uint32_t event : commands_[i].waits())
      if (ended_.contains(event) || starts_.count(event))
        return fail(i, "waits for a collective by itself, wanted a collective_done");
    return Error::success();
  }

  Error begin(int i) {
    const plan::Command &c = commands_[i];
    if (Error error = checkWaits(i))
      return error;
    if (Error error = Operands(plan_, c, p_, i).check())
      return error;
    if (auto previous = latest_.find(c.communicator());
        previous != latest_.end() && !order_.before(place(previous->second), place(i)))
      return fail(i, "does not wait for " + describe(plan_, p_, previous->second) +
                         " of the same communicator: ranks may meet in different ones");
    latest_[c.communicator()] = i;
    if (c.signals_size() != 1)
      return fail(i, "signals: got " + Twine(c.signals_size()) + ", wanted one for its done");
    starts_[c.signals(0)] = i;
    return Error::success();
  }

  Error end(int i) {
    const plan::Command &c = commands_[i];
    if (c.inputs_size() || c.outputs_size() || c.has_workspace())
      return fail(i, "has operands, wanted none");
    auto found = c.waits_size() == 1 ? starts_.find(c.waits(0)) : starts_.end();
    if (found == starts_.end())
      return fail(i, "wanted to wait for the event of one start that has no other done");
    int from = found->second;
    ended_.insert(found->first);
    starts_.erase(found);
    const plan::Command &start = commands_[from];
    auto check = [&](const plan::Ref &ref) -> Error {
      const plan::Buffer &buffer = plan_.buffers(ref.buffer());
      if (buffer.persistent() || buffer.last() >= start_ + i)
        return Error::success();
      return fail(i, describeBuffer(plan_, ref.buffer()) + " ends while " +
                         describe(plan_, p_, from) + " may still use it: got " +
                         Twine(buffer.last()) + ", wanted at least " + Twine(start_ + i));
    };
    for (int k = 0; k < start.inputs_size(); ++k)
      if (!start.inputs(k).absent() && !isOverwritten(start, k)) // else the result lies there
        if (Error error = check(start.inputs(k)))
          return error;
    return check(start.outputs(0));
  }

  Place place(int i) const { return {p_, unsigned(i), start_ + uint64_t(i)}; }

  const plan::Plan &plan_;
  const Order &order_;
  const google::protobuf::RepeatedPtrField<plan::Command> &commands_;
  unsigned p_;
  uint64_t start_;
  std::map<uint32_t, int> latest_; ///< communicator -> its last start
  std::map<uint32_t, int> starts_; ///< event -> start that has no done yet
  DenseSet<uint32_t> ended_;       ///< events of starts that have one
};

} // namespace

Error checkCollectives(const plan::Plan &plan) {
  Expected<Order> order = Order::compute(plan);
  if (!order)
    return order.takeError();
  auto starts = programStarts(plan);
  for (int p = 0; p < plan.programs_size(); ++p)
    if (Error error = Meetings(plan, *order, p, starts[p]).check())
      return error;
  return Error::success();
}

} // namespace shardc::check
