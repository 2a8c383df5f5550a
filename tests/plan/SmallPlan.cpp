// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/SmallPlan.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Scalars.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace shardc {

plan::Ref smallRef(uint32_t buffer, std::initializer_list<int64_t> dims, DType dtype) {
  plan::Ref ref;
  ref.set_buffer(buffer);
  ref.set_dtype(uint32_t(dtype));
  for (int64_t dim : dims)
    ref.add_dims(dim);
  return ref;
}

namespace {

void addBuffer(plan::Plan &plan, const char *name, plan::BufferKind kind, uint64_t offset,
               uint64_t bytes, int first = -1, int last = -1) {
  plan::Buffer &buffer = *plan.add_buffers();
  buffer.set_name(name);
  buffer.set_kind(kind);
  buffer.set_offset(offset);
  buffer.set_bytes(bytes);
  buffer.set_persistent(first < 0);
  if (first >= 0) {
    buffer.set_first(first);
    buffer.set_last(last);
  }
}

plan::Command &addFused(plan::Program &program, const char *body, std::vector<plan::Ref> inputs,
                        plan::Ref output, unsigned phase) {
  plan::Command &command = *program.add_commands();
  command.set_kernel("fused");
  plan::Attr &attr = *command.add_attrs();
  attr.set_name("body");
  attr.set_s(body);
  plan::Attr &outputs = *command.add_attrs();
  outputs.set_name("outputs");
  outputs.set_s("t0");
  for (plan::Ref &input : inputs)
    *command.add_inputs() = input;
  *command.add_outputs() = output;
  command.set_phase(phase);
  return command;
}

void addSum(plan::Program &program, plan::Ref input, plan::Ref output) {
  plan::Command &command = *program.add_commands();
  command.set_kernel("reduce_sum");
  plan::Attr &axes = *command.add_attrs();
  axes.set_name("axes");
  axes.mutable_ints()->add_v(0);
  axes.mutable_ints()->add_v(1);
  plan::Attr &keep = *command.add_attrs();
  keep.set_name("keep_dims");
  keep.set_i(0);
  *command.add_inputs() = input;
  *command.add_outputs() = output;
}

/// Requires: dense.
std::pair<uint64_t, uint64_t> bytesOf(const plan::Plan &plan, const plan::Ref &ref) {
  uint64_t bytes = byteSize(DType(ref.dtype()));
  for (int64_t dim : ref.dims())
    bytes *= uint64_t(dim);
  return {ref.offset(),
          ref.offset() + (ref.rank_stride() ? plan.ranks() * ref.rank_stride() : bytes)};
}

} // namespace

void countVersions(plan::Plan &plan) {
  std::vector<const plan::Command *> before;
  auto count = [&](plan::Ref &ref) {
    auto [begin, end] = bytesOf(plan, ref);
    uint32_t version = 0;
    for (const plan::Command *c : before)
      version += any_of(c->outputs(), [&, begin = begin, end = end](const plan::Ref &out) {
        auto [from, to] = bytesOf(plan, out);
        return out.buffer() == ref.buffer() && from < end && begin < to;
      });
    ref.set_version(version);
  };
  for (plan::Program &program : *plan.mutable_programs()) {
    if (program.name() == "eval")
      before.clear();
    for (plan::Command &c : *program.mutable_commands()) {
      for (auto *refs : {c.mutable_inputs(), c.mutable_outputs()})
        for (plan::Ref &ref : *refs)
          if (!ref.absent())
            count(ref);
      before.push_back(&c);
    }
    for (plan::Output &output : *plan.mutable_outputs())
      if (output.program() == program.name())
        count(*output.mutable_ref());
  }
}

plan::Plan smallPlan() {
  plan::Plan plan;
  plan.set_version(kPlanVersion);
  plan.set_compiler("test");
  plan.set_ranks(1);
  plan.set_batch(2);
  plan.set_accumulate(1);
  plan.add_strings("");
  plan.add_strings("layer.0");

  // Persistent ones first, [0, 1536); then what comes and goes. The squares reuse nothing,
  // evaluation reuses the place of y.
  addBuffer(plan, "scalars", plan::SCALAR, 0, kNumScalars * sizeof(double));
  addBuffer(plan, "x", plan::INPUT, 256, 24);
  addBuffer(plan, "layer.0", plan::PARAMETER, 512, 24);
  addBuffer(plan, "layer.0.grad", plan::GRADIENT, 2048, 24, 3, 5);
  addBuffer(plan, "layer.0.m", plan::OPTIMIZER_STATE, 768, 24);
  addBuffer(plan, "layer.0.v", plan::OPTIMIZER_STATE, 1024, 24);
  addBuffer(plan, "loss_sum", plan::SCALAR, 1280, 4);
  addBuffer(plan, "y", plan::ACTIVATION, 1536, 24, 0, 4);
  addBuffer(plan, "squares", plan::ACTIVATION, 1792, 24, 1, 3);
  addBuffer(plan, "y", plan::ACTIVATION, 1536, 24, 5, 7);

  plan::Bucket &bucket = *plan.add_buckets();
  bucket.set_name("layer.0");
  bucket.set_elements(6);
  bucket.set_decay_end(6);
  bucket.set_parameter_buffer(kParameters);
  bucket.set_gradient_buffer(kGradients);
  bucket.add_state_buffers(kM);
  bucket.add_state_buffers(kV);
  plan::Parameter &w = *plan.add_parameters();
  w.set_name("layer.0.weight");
  w.add_dims(2);
  w.add_dims(3);
  w.set_trainable(true);
  plan::Input &x = *plan.add_inputs();
  x.set_name("x");
  x.add_dims(2);
  x.add_dims(3);
  x.set_buffer(kX);
  plan.set_scalars_buffer(kScalarsBuffer);

  plan::Program &train = *plan.add_programs();
  train.set_name("train");
  addFused(train, "t0: f32 = x0 * x1;", {smallRef(kX, {2, 3}), smallRef(kParameters, {2, 3})},
           smallRef(kY, {2, 3}), 0);
  addFused(train, "t0: f32 = x0 * x0;", {smallRef(kY, {2, 3})}, smallRef(kSquares, {2, 3}), 0);
  addSum(train, smallRef(kSquares, {2, 3}), smallRef(kLoss, {}));
  addFused(train, "t0: f32 = 2 * x0 * x1;", {smallRef(kY, {2, 3}), smallRef(kX, {2, 3})},
           smallRef(kGradients, {2, 3}), 1);
  plan::Program &update = *plan.add_programs();
  update.set_name("update");
  plan::Command &step = addFused(update, "t0: f32 = x0 - 0.125 * x1;",
                                 {smallRef(kParameters, {6}), smallRef(kGradients, {6})},
                                 smallRef(kParameters, {6}), 2);
  step.add_in_place(1);
  plan::Program &eval = *plan.add_programs();
  eval.set_name("eval");
  addFused(eval, "t0: f32 = x0 * x1;", {smallRef(kX, {2, 3}), smallRef(kParameters, {2, 3})},
           smallRef(kEvalY, {2, 3}), 0);
  addSum(eval, smallRef(kEvalY, {2, 3}), smallRef(kLoss, {}));

  for (const char *name : {"train", "eval"}) {
    plan::Output &output = *plan.add_outputs();
    output.set_name("loss_sum");
    output.set_program(name);
    *output.mutable_ref() = smallRef(kLoss, {});
  }
  plan.add_spaces()->set_bytes(2048 + 256);
  plan.mutable_spaces(0)->set_lower_bound(findPeak(plan, 0).bytes);
  countVersions(plan);
  return plan;
}

plan::Plan regionPlan() {
  plan::Plan plan = smallPlan();
  for (auto [name, offset, bytes, bound] : {std::tuple("persistent", 0, 1536, 1536), std::tuple("step", 1536, 768, 512)}) {
    plan::Region &region = *plan.mutable_spaces(0)->add_regions();
    region.set_name(name);
    region.set_offset(offset);
    region.set_bytes(bytes);
    region.set_lower_bound(bound);
  }
  return plan;
}

plan::Plan twoStreamPlan() {
  plan::Plan plan = smallPlan();
  plan.set_events(1);
  command(plan, 0, 0).add_signals(0);
  command(plan, 0, 3).add_waits(0);
  command(plan, 0, 3).set_stream(1);
  return plan;
}

} // namespace shardc
