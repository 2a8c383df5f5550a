// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/CheckBuckets.h"
#include "ir/base/Error.h"

using namespace llvm;

namespace shardc::check {

DType elementType(const plan::Bucket &bucket, Holding::Role role) {
  if (role == Holding::Gradients && bucket.has_gradient_dtype())
    return DType(bucket.gradient_dtype());
  bool wide = role == Holding::Master || (role == Holding::State && bucket.has_master_buffer());
  return wide ? wideType(DType(bucket.dtype())) : DType(bucket.dtype());
}

uint64_t bucketBytes(const plan::Plan &plan, const plan::Bucket &bucket, DType dtype, bool slice) {
  return bucket.elements() * byteSize(dtype) / (slice ? plan.ranks() : 1);
}

bool isAllOf(const plan::Plan &plan, const plan::Ref &ref) {
  return !ref.rank_stride() && elementsAreDisjoint(ref) && isDense(ref) &&
         touchedBytes(ref)->begin == 0 && numBytes(ref) == plan.buffers(ref.buffer()).bytes();
}

Error Holdings::add(const plan::Plan &plan, uint32_t buffer, Holding holding) {
  uint64_t bytes = bucketBytes(plan, plan.buckets(holding.bucket), holding.dtype, holding.slice);
  if (plan.buffers(buffer).bytes() != bytes)
    return userError(describeBuffer(plan, buffer) + ": size: got " +
                     Twine(plan.buffers(buffer).bytes()) + " bytes, wanted " + Twine(bytes) +
                     " for bucket " + plan.buckets(holding.bucket).name());
  Holding &mine = list_[buffer];
  bool same = mine.role == holding.role && mine.slice == holding.slice &&
              mine.bucket == holding.bucket && mine.dtype == holding.dtype;
  if (mine.role != Holding::None && !same)
    return userError(describeBuffer(plan, buffer) + " holds something else already");
  mine = holding;
  return Error::success();
}

Error Holdings::addTable(const plan::Plan &plan) {
  unsigned stage = stageOf(plan);
  for (int i = 0; i < plan.buckets_size(); ++i) {
    const plan::Bucket &b = plan.buckets(i);
    uint32_t index = uint32_t(i);
    auto take = [&](int64_t buffer, Holding::Role role, unsigned slicedFrom) {
      Holding holding{role, stage >= slicedFrom, index, elementType(b, role)};
      return at(add(plan, uint32_t(buffer), holding), [&] { return "bucket " + b.name(); });
    };
    if (b.parameter_buffer() >= 0)
      if (Error error = take(b.parameter_buffer(), Holding::Parameters, 3))
        return error;
    if (b.has_master_buffer())
      if (Error error = take(b.master_buffer(), Holding::Master, 1))
        return error;
    if (b.gradient_buffer() >= 0)
      if (Error error = take(b.gradient_buffer(), Holding::Gradients, 2))
        return error;
    for (uint32_t state : b.state_buffers())
      if (Error error = take(state, Holding::State, 1))
        return error;
  }
  return Error::success();
}

/// Where a later micro-step adds a reduced slice, which lies in `buffer`, to: the bucket's
/// gradient.
static const plan::Ref *findSum(const plan::Plan &plan, const plan::Program &program,
                                uint32_t buffer) {
  for (const plan::Command &c : program.commands())
    if (any_of(c.inputs(),
               [&](const plan::Ref &in) { return !in.absent() && in.buffer() == buffer; }))
      return c.outputs_size() == 1 && plan.buffers(c.outputs(0).buffer()).kind() == plan::GRADIENT
                 ? &c.outputs(0)
                 : nullptr;
  return nullptr;
}

Error Holdings::addCommand(const plan::Plan &plan, unsigned p, unsigned index) {
  const plan::Command &c = plan.programs(p).commands(index);
  if (isGather(c)) {
    const Holding &from = list_[c.inputs(0).buffer()];
    const plan::Bucket &bucket = plan.buckets(int(from.bucket));
    if (from.role != (bucket.has_master_buffer() ? Holding::Master : Holding::Parameters))
      return userError("gathers what is no bucket's parameters");
    return add(plan, c.outputs(0).buffer(),
               {Holding::Parameters, false, from.bucket, elementType(bucket, Holding::Parameters)});
  }
  if (!isReduceScatter(c))
    return Error::success();
  Holding to = list_[c.outputs(0).buffer()];
  if (to.role == Holding::None)
    if (const plan::Ref *sum = findSum(plan, plan.programs(p), c.outputs(0).buffer()))
      to = list_[sum->buffer()];
  if (to.role != Holding::Gradients)
    return userError("its result is no bucket's gradient");
  bool inside = c.inputs(0).buffer() == c.outputs(0).buffer();
  // On the way gradients may be of the parameters' type, though they add up in a wider one.
  DType dtype = DType(c.outputs(0).dtype());
  if (const plan::Bucket &bucket = plan.buckets(int(to.bucket));
      dtype != elementType(bucket, Holding::Gradients) &&
      (dtype != DType(bucket.dtype()) || plan.accumulate() <= 1))
    return userError("element type: got " + toString(dtype) + ", wanted that of the gradients of " +
                     bucket.name());
  if (Error error =
          add(plan, c.outputs(0).buffer(), {Holding::Gradients, !inside, to.bucket, dtype}))
    return error;
  // Another micro-step's gradients are not these.
  auto starts = programStarts(plan);
  const plan::Buffer &from = plan.buffers(c.inputs(0).buffer());
  if (!inside && (from.persistent() || from.first() < starts[p] || from.last() > starts[p + 1]))
    return userError(describeBuffer(plan, c.inputs(0).buffer()) + " lives longer than " +
                     plan.programs(p).name() + ", wanted gradients of this micro-step");
  return add(plan, c.inputs(0).buffer(), {Holding::Gradients, false, to.bucket, dtype});
}

Expected<Holdings> Holdings::find(const plan::Plan &plan) {
  Holdings holdings;
  holdings.list_.resize(plan.buffers_size());
  if (Error error = holdings.addTable(plan))
    return error;
  for (int p = 0; p < plan.programs_size(); ++p)
    for (int i = 0; i < plan.programs(p).commands_size(); ++i)
      if (Error error = at(holdings.addCommand(plan, p, i), [&] { return describe(plan, p, i); }))
        return error;
  return holdings;
}

} // namespace shardc::check
