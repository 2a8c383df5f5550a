// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/RankPlan.h"
#include "ir/plan/Scalars.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace shardc {

PlanWriter::PlanWriter(unsigned ranks) {
  plan_.set_version(kPlanVersion);
  plan_.set_ranks(ranks);
  plan_.set_batch(1);
  plan_.set_accumulate(1);
  plan_.add_strings("");
  plan_.add_spaces();
  plan_.set_scalars_buffer(buffer("scalars", plan::SCALAR, 2 * kNumScalars, true));
}

uint32_t PlanWriter::buffer(const char *name, plan::BufferKind kind, int64_t elements, bool persistent) {
  plan::Space &space = *plan_.mutable_spaces(0);
  plan::Buffer &buffer = *plan_.add_buffers();
  buffer.set_name(name);
  buffer.set_kind(kind);
  buffer.set_offset(space.bytes());
  buffer.set_bytes(4 * elements);
  buffer.set_persistent(persistent);
  space.set_bytes(llvm::alignTo(space.bytes() + buffer.bytes(), kAlignment));
  return plan_.buffers_size() - 1;
}

void PlanWriter::program(const char *name) { plan_.add_programs()->set_name(name); }

plan::Command &PlanWriter::command(const char *kernel, unsigned stream, std::vector<plan::Ref> inputs,
                                   std::vector<plan::Ref> outputs) {
  plan::Command &command = *plan_.mutable_programs()->rbegin()->add_commands();
  command.set_kernel(kernel);
  command.set_stream(stream);
  for (const plan::Ref &ref : inputs)
    *command.add_inputs() = ref;
  for (const plan::Ref &ref : outputs)
    *command.add_outputs() = ref;
  return command;
}

plan::Command &PlanWriter::fused(const char *body, std::vector<plan::Ref> inputs, plan::Ref output) {
  plan::Command &c = command("fused", 0, std::move(inputs), {output});
  addAttr(c, "body").set_s(body);
  addAttr(c, "outputs").set_s("t0");
  return c;
}

plan::Command &PlanWriter::sum(plan::Ref input, plan::Ref output) {
  plan::Command &c = command("reduce_sum", 0, {input}, {output});
  addAttr(c, "axes").mutable_ints()->add_v(0);
  addAttr(c, "keep_dims").set_i(1);
  return c;
}

plan::Command &PlanWriter::collective(const char *kernel, unsigned stream, std::vector<plan::Ref> inputs,
                                      plan::Ref output) {
  plan::Command &c = command(kernel, stream, std::move(inputs), {output});
  c.set_communicator(stream);
  addAttr(c, "ranks").set_i(plan_.ranks());
  return c;
}

void PlanWriter::order(plan::Command &after, plan::Command &then) {
  after.add_signals(plan_.events());
  then.add_waits(plan_.events());
  plan_.set_events(plan_.events() + 1);
}

plan::Command &PlanWriter::done(plan::Command &start) {
  plan::Command &c = command("collective_done", 0, {}, {});
  order(start, c);
  return c;
}

plan::Plan PlanWriter::take() { return std::move(plan_); }

plan::Ref sliceRef(uint32_t buffer, int64_t n) {
  plan::Ref ref = smallRef(buffer, {n});
  ref.set_rank_stride(n * 4);
  return ref;
}

namespace {

/// Two buffers that both kinds have, and the commands between them.
struct Parts {
  uint32_t x, loss, y, squares;
  int64_t n; ///< elements of the whole bucket
};

Parts addParts(PlanWriter &w, RankPlan &p, unsigned ranks) {
  Parts parts;
  parts.n = kSliceElements * ranks;
  p.x = parts.x = w.buffer("x", plan::INPUT, parts.n, true);
  p.loss = parts.loss = w.buffer("loss_sum", plan::SCALAR, 2, true);
  parts.y = w.buffer("y", plan::ACTIVATION, parts.n, false);
  parts.squares = w.buffer("squares", plan::ACTIVATION, parts.n, false);
  return parts;
}

/// y = x w, gradient = 2 x y -> `gradient`, which it returns; then the loss over all ranks. Dones last.
void addStep(PlanWriter &w, const Parts &parts, uint32_t whole, uint32_t gradient, plan::Ref reduced, bool inPlace) {
  auto all = [&](uint32_t buffer) { return smallRef(buffer, {parts.n}); };
  w.fused("t0: f32 = x0 * x1;", {all(parts.x), all(whole)}, all(parts.y));
  plan::Command &backward = w.fused("t0: f32 = 2 * x0 * x1;", {all(parts.x), all(parts.y)}, all(gradient));
  plan::Command &reduce = w.collective("reduce_scatter_start", 2, {all(gradient)}, reduced);
  addAttr(reduce, "in_place").set_i(inPlace);
  w.order(backward, reduce);
  w.fused("t0: f32 = x0 * x0;", {all(parts.y)}, all(parts.squares));
  plan::Command &sum = w.sum(all(parts.squares), smallRef(parts.loss, {1}));
  plan::Command &total = w.collective("all_reduce_start", 2, {smallRef(parts.loss, {1})}, smallRef(parts.loss, {1}));
  total.add_in_place(1);
  w.order(sum, total);
  w.done(reduce);
  w.done(total);
}

void addLoss(plan::Plan &plan, uint32_t loss) {
  plan::Output &output = *plan.add_outputs();
  output.set_name("loss_sum");
  output.set_program("train");
  *output.mutable_ref() = smallRef(loss, {1});
}

} // namespace

RankPlan slicedPlan(unsigned ranks) {
  RankPlan p;
  p.slices = true;
  PlanWriter w(ranks);
  Parts parts = addParts(w, p, ranks);
  p.parameters = w.buffer("w", plan::PARAMETER, kSliceElements, true);
  p.gradients = w.buffer("w.grad", plan::GRADIENT, kSliceElements, true);
  uint32_t whole = w.buffer("w.whole", plan::COMMUNICATION, parts.n, false);
  uint32_t flight = w.buffer("w.grad.whole", plan::COMMUNICATION, parts.n, false);
  plan::Ref mine = smallRef(p.parameters, {kSliceElements}), gradient = smallRef(p.gradients, {kSliceElements});
  w.program("train");
  w.done(w.collective("all_gather_start", 1, {mine}, smallRef(whole, {parts.n})));
  addStep(w, parts, whole, flight, gradient, /*inPlace=*/false);
  w.program("update");
  w.fused("t0: f32 = x0 - 0.125 * x1;", {mine, gradient}, mine).add_in_place(1);
  p.plan = w.take();
  addLoss(p.plan, p.loss);
  return p;
}

RankPlan inPlacePlan(unsigned ranks) {
  RankPlan p;
  PlanWriter w(ranks);
  Parts parts = addParts(w, p, ranks);
  p.parameters = w.buffer("w", plan::PARAMETER, parts.n, true);
  p.gradients = w.buffer("w.grad", plan::GRADIENT, parts.n, true);
  plan::Ref mine = sliceRef(p.parameters, kSliceElements), gradient = sliceRef(p.gradients, kSliceElements);
  plan::Ref whole = smallRef(p.parameters, {parts.n});
  w.program("train");
  addStep(w, parts, p.parameters, p.gradients, gradient, /*inPlace=*/true);
  w.program("update");
  plan::Command &update = w.fused("t0: f32 = x0 - 0.125 * x1;", {mine, gradient}, mine);
  update.add_in_place(1);
  plan::Command &gather = w.collective("all_gather_start", 1, {mine, whole}, whole);
  gather.add_in_place(2);
  w.order(update, gather);
  w.done(gather);
  p.plan = w.take();
  addLoss(p.plan, p.loss);
  return p;
}

void setParameters(const RankPlan &p, Executor &executor) {
  int64_t n = kSliceElements * (p.slices ? 1 : p.plan.ranks()), first = p.slices ? kSliceElements * executor.rank() : 0;
  std::vector<float> w(n);
  for (int64_t i = 0; i < n; ++i)
    w[i] = startOf(first + i);
  llvm::cantFail(executor.write(p.parameters, 0, w.data(), 4 * n));
}

void setInputs(const RankPlan &p, Executor &executor, int step) {
  std::vector<float> x(kSliceElements * p.plan.ranks());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = inputOf(executor.rank(), i, step);
  llvm::cantFail(executor.write(p.x, 0, x.data(), 4 * x.size()));
}

std::vector<float> wantedLosses(unsigned ranks, int steps, std::vector<float> &parameters) {
  parameters.resize(kSliceElements * ranks);
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i] = startOf(i);
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    double loss = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      double gradient = 0;
      for (unsigned r = 0; r < ranks; ++r) {
        double x = inputOf(r, i, step), y = x * parameters[i];
        loss += y * y;
        gradient += 2 * x * y;
      }
      parameters[i] -= float(0.125 * gradient);
    }
    losses.push_back(float(loss));
  }
  return losses;
}

} // namespace shardc
