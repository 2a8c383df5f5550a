// SPDX-License-Identifier: Apache-2.0
// Completeness: what each stage must do to every bucket of an update step is there, once, on the
// right memory.
#include "ir/base/Error.h"
#include "ir/plan/CheckBuckets.h"

using namespace llvm;

namespace shardc::check {
namespace {

bool uses(const google::protobuf::RepeatedPtrField<plan::Ref> &operands, uint32_t buffer) {
  return any_of(operands,
                [&](const plan::Ref &ref) { return !ref.absent() && ref.buffer() == buffer; });
}

/// Commands of a program that write a buffer, in order.
SmallVector<int> writersOf(const plan::Program &program, uint32_t buffer) {
  SmallVector<int> list;
  for (int i = 0; i < program.commands_size(); ++i)
    if (uses(program.commands(i).outputs(), buffer))
      list.push_back(i);
  return list;
}

class BucketTraining {
public:
  BucketTraining(const plan::Plan &plan, const Holdings &holdings, uint32_t index)
      : plan_(plan), holdings_(holdings), index_(index), bucket_(plan.buckets(int(index))),
        stage_(stageOf(plan)) {}

  Error check() const {
    for (int p = 0; p < plan_.programs_size(); ++p) {
      const plan::Program &program = plan_.programs(p);
      if (program.name() == "update") {
        if (Error error = checkUpdate(p))
          return error;
      } else if (isTraining(program) && bucket_.gradient_buffer() >= 0) {
        if (Error error = stage_ < 2 ? checkWholeGradient(p) : checkSlicedGradient(p))
          return error;
      }
    }
    return Error::success();
  }

private:
  Error fail(int p, const Twine &what) const {
    return userError("bucket " + bucket_.name() + ": " + plan_.programs(p).name() + ": " + what);
  }

  /// Stages 0 and 1: summed up locally, reduced in place once, at the end.
  Error checkWholeGradient(int p) const {
    const plan::Program &program = plan_.programs(p);
    uint32_t buffer = bucket_.gradient_buffer();
    SmallVector<int> writers = writersOf(program, buffer);
    bool reduces = plan_.ranks() > 1 && isLastStep(program);
    for (int i : writers) {
      const plan::Command &c = program.commands(i);
      if (!isStart(c)) {
        if (Error error = checkContribution(p, c))
          return error;
        continue;
      }
      bool right = stage_ == 0 ? isAllReduce(c) : isReduceScatter(c);
      if (!reduces || !right || i != writers.back() || !isAllOf(plan_, c.inputs(0)))
        return fail(
            p, describe(plan_, p, i) + " reduces its gradients: wanted " +
                   (reduces ? "one reduction of all of them, after all are written" : "none here"));
    }
    if (reduces && (writers.empty() || !isStart(program.commands(writers.back()))))
      return fail(p, "its gradients are not reduced over the ranks");
    return Error::success();
  }

  /// Later micro-steps add to what is there.
  Error checkContribution(int p, const plan::Command &c) const {
    if (p == 0)
      return Error::success();
    for (int i = 0; i < c.outputs_size(); ++i)
      if (c.outputs(i).buffer() == uint32_t(bucket_.gradient_buffer()) &&
          (i >= c.in_place_size() || !c.in_place(i)))
        return fail(p, c.kernel() + " writes over the gradients of earlier micro-steps");
    return Error::success();
  }

  /// Stages 2 and 3: each micro-step reduces into the slice, or adds what it reduced to it.
  Error checkSlicedGradient(int p) const {
    const plan::Program &program = plan_.programs(p);
    uint32_t buffer = bucket_.gradient_buffer();
    int reductions = 0;
    for (const plan::Command &c : program.commands())
      if (isReduceScatter(c)) {
        const Holding &to = holdings_[c.outputs(0).buffer()];
        reductions += to.bucket == index_ ? 1 : 0;
        if (!isAllOf(plan_, c.inputs(0)) || !isAllOf(plan_, c.outputs(0)))
          return fail(p, "wanted a reduction of a whole bucket into a slice");
      }
    SmallVector<int> writers = writersOf(program, buffer);
    if (reductions != 1 || writers.size() != 1)
      return fail(p, "got " + Twine(reductions) + " reductions of its gradients and " +
                         Twine(writers.size()) + " commands that write them, wanted one");
    const plan::Command &c = program.commands(writers.front());
    bool adds = uses(c.inputs(), buffer);
    bool reduced = isReduceScatter(c) || any_of(c.inputs(), [&](const plan::Ref &in) {
                     return !in.absent() && in.buffer() != buffer &&
                            holdings_[in.buffer()].role == Holding::Gradients;
                   });
    if (!reduced || adds != (p > 0))
      return fail(p, describe(plan_, p, writers.front()) + ": wanted the reduced slice " +
                         (p > 0 ? "added to that of earlier micro-steps" : "by itself"));
    return Error::success();
  }

  Error checkUpdate(int p) const {
    const plan::Program &program = plan_.programs(p);
    if (bucket_.gradient_buffer() >= 0 && !writersOf(program, bucket_.gradient_buffer()).empty())
      return fail(p, "writes gradients, wanted it to read them only");
    SmallVector<int> updates, gathers, roundings;
    bool master = bucket_.has_master_buffer();
    if (master)
      updates = writersOf(program, bucket_.master_buffer());
    if (bucket_.parameter_buffer() >= 0)
      for (int i : writersOf(program, bucket_.parameter_buffer()))
        (isGather(program.commands(i)) ? gathers : master ? roundings : updates).push_back(i);
    size_t wanted = bucket_.gradient_buffer() >= 0;
    if (updates.size() != wanted)
      return fail(p, "got " + Twine(updates.size()) +
                         " commands that update its parameters, wanted " + Twine(wanted));
    bool sliced = stage_ == 1 || stage_ == 2;
    if (gathers.size() != (sliced ? wanted : 0))
      return fail(p, "got " + Twine(gathers.size()) + " gathers of its parameters, wanted " +
                         Twine(sliced ? wanted : 0));
    for (int i : gathers)
      if (!isAllOf(plan_, program.commands(i).outputs(0)) || (master && i < updates.front()))
        return fail(p, describe(plan_, p, i) + ": wanted to gather the whole bucket" +
                           (master ? " after its update" : ""));
    if (roundings.size() != (master && stage_ == 0 ? wanted : 0))
      return fail(p, "got " + Twine(roundings.size()) + " roundings of its master, wanted " +
                         Twine(master && stage_ == 0 ? wanted : 0));
    for (int i : roundings)
      if (Error error = checkRounding(p, i, updates.front()))
        return error;
    return wanted ? checkUpdateCommand(p, updates.front()) : Error::success();
  }

  /// Stage 0: 16-bit parameters are made of the updated master, all of them, of nothing else.
  Error checkRounding(int p, int index, int update) const {
    const plan::Command &c = plan_.programs(p).commands(index);
    if (index == update && findAttr(c.attrs(), "rounded")) { // the update itself, beside what it updates
      const plan::Ref &rounded = c.outputs(c.outputs_size() - 1);
      if (c.outputs(0).buffer() == bucket_.master_buffer() && isAllOf(plan_, rounded) &&
          rounded.buffer() == uint32_t(bucket_.parameter_buffer()))
        return Error::success();
    }
    bool right = index > update && c.inputs_size() == 1 && c.outputs_size() == 1 &&
                 !c.inputs(0).absent() && c.inputs(0).buffer() == bucket_.master_buffer() &&
                 isAllOf(plan_, c.inputs(0)) && isAllOf(plan_, c.outputs(0));
    return right ? Error::success()
                 : fail(p, describe(plan_, p, index) + ": wanted it to round the updated master");
  }

  /// Parameters, gradients and state of this bucket and no other: all of each, or slice r.
  Error checkUpdateCommand(int p, int index) const {
    const plan::Command &c = plan_.programs(p).commands(index);
    auto refuse = [&](const Twine &what) {
      return fail(p, describe(plan_, p, index) + ": " + what);
    };
    for (const auto *operands : {&c.inputs(), &c.outputs()})
      for (const plan::Ref &ref : *operands) {
        if (ref.absent() || holdings_[ref.buffer()].role == Holding::None)
          continue;
        const Holding &holding = holdings_[ref.buffer()];
        if (holding.bucket != index_)
          return refuse("works on " + describeBuffer(plan_, ref.buffer()) + " of another bucket");
        bool slice = stage_ >= 1 && !holding.slice; // of memory that is whole on each rank
        if (slice ? !ref.rank_stride() : !isAllOf(plan_, ref))
          return refuse("works on another part of " + describeBuffer(plan_, ref.buffer()) +
                        ", wanted " + (slice ? "slice r" : "all of it"));
      }
    if (!uses(c.inputs(), bucket_.gradient_buffer()))
      return refuse("does not read the gradients");
    for (uint32_t buffer : bucket_.state_buffers())
      if (uses(c.inputs(), buffer) != uses(c.outputs(), buffer))
        return refuse("does not read and write " + describeBuffer(plan_, buffer));
    return checkOptimizer(c, refuse);
  }

  /// What an optimizer's kernel must know of the slice.
  Error checkOptimizer(const plan::Command &c, function_ref<Error(const Twine &)> refuse) const {
    if (!is_contained<StringRef>({"adamw", "adam", "sgd"}, c.kernel()))
      return Error::success();
    auto number = [&](StringRef name, int64_t otherwise) {
      const plan::Attr *attr = findAttr(c.attrs(), name);
      return attr && attr->value_case() == plan::Attr::kI ? attr->i() : otherwise;
    };
    int64_t ranks = stage_ >= 1 ? plan_.ranks() : 1;
    if (number("ranks", 1) != ranks || number("decay_end", -1) != int64_t(bucket_.decay_end()))
      return refuse("attributes: got ranks " + Twine(number("ranks", 1)) + " and decay_end " +
                    Twine(number("decay_end", -1)) + ", wanted " + Twine(ranks) + " and " +
                    Twine(bucket_.decay_end()));
    for (uint32_t buffer : bucket_.state_buffers())
      if (!uses(c.inputs(), buffer))
        return refuse("does not use " + describeBuffer(plan_, buffer));
    return Error::success();
  }

  const plan::Plan &plan_;
  const Holdings &holdings_;
  uint32_t index_;
  const plan::Bucket &bucket_;
  unsigned stage_;
};

} // namespace

/// The scale of the loss follows each update, once.
static Error checkLossScale(const plan::Plan &plan) {
  if (!plan.has_loss_scale_buffer())
    return Error::success();
  for (const plan::Program &program : plan.programs())
    if (size_t writers = writersOf(program, plan.loss_scale_buffer()).size(); writers != (program.name() == "update"))
      return userError("loss scale: " + program.name() + ": got " + Twine(writers) + " commands that write it, wanted " +
                       Twine(int(program.name() == "update")));
  return Error::success();
}

Error checkTraining(const plan::Plan &plan) {
  if (Error error = checkLossScale(plan))
    return error;
  Expected<Holdings> holdings = Holdings::find(plan);
  if (!holdings)
    return holdings.takeError();
  for (int b = 0; b < plan.buckets_size(); ++b)
    if (Error error = BucketTraining(plan, *holdings, uint32_t(b)).check())
      return error;
  return Error::success();
}

} // namespace shardc::check
