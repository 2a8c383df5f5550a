// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/RankPlan.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Scalars.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

using namespace llvm;

namespace shardc {
namespace {

constexpr int64_t kElements = 24;

class Maker {
public:
  Maker(unsigned ranks, unsigned stage, unsigned accumulate)
      : ranks_(ranks), stage_(ranks > 1 ? stage : 0), n_(kElements / ranks),
        accumulate_(accumulate) {
    plan_.set_version(kPlanVersion);
    plan_.set_compiler("test");
    plan_.set_ranks(ranks);
    plan_.set_zero(stage);
    plan_.set_batch(2);
    plan_.set_accumulate(accumulate);
    plan_.add_strings("");
    plan_.add_strings("layer.0");
  }

  plan::Plan run() {
    makeTables();
    for (unsigned k = 0; k < std::min(accumulate_, 3u); ++k)
      makeStep(k);
    makeUpdate();
    makeEval();
    finishPlan(plan_);
    return std::move(plan_);
  }

private:
  uint32_t buffer(const char *name, plan::BufferKind kind, int64_t bytes, bool persistent) {
    plan::Buffer &b = *plan_.add_buffers();
    b.set_name(name);
    b.set_kind(kind);
    b.set_bytes(uint64_t(bytes));
    b.set_persistent(persistent);
    return uint32_t(plan_.buffers_size() - 1);
  }
  uint32_t temporary(const char *name, plan::BufferKind kind, int64_t elements) {
    return buffer(name, kind, elements * 4, /*persistent=*/false);
  }

  void makeTables() {
    auto held = [&](unsigned from) { return (stage_ >= from ? n_ : kElements) * 4; };
    plan_.set_scalars_buffer(buffer("scalars", plan::SCALAR, kNumScalars * 8, true));
    x_ = buffer("x", plan::INPUT, 24, true);
    w_ = buffer("w", plan::PARAMETER, held(3), true);
    g_ = buffer("g", plan::GRADIENT, held(2), false);
    m_ = buffer("m", plan::OPTIMIZER_STATE, held(1), true);
    loss_ = buffer("loss", plan::SCALAR, 4, true);
    plan::Bucket &bucket = *plan_.add_buckets();
    bucket.set_name("layer.0");
    bucket.set_elements(kElements);
    bucket.set_decay_end(6);
    bucket.set_parameter_buffer(int(w_));
    bucket.set_gradient_buffer(int(g_));
    bucket.add_state_buffers(m_);
    plan::Parameter &w = *plan_.add_parameters();
    w.set_name("layer.0.weight");
    w.add_dims(2);
    w.add_dims(3);
    w.set_trainable(true);
    plan::Input &x = *plan_.add_inputs();
    x.set_name("x");
    x.add_dims(2);
    x.add_dims(3);
    x.set_buffer(x_);
  }

  plan::Command &add(const char *kernel, std::vector<plan::Ref> inputs, plan::Ref output,
                     unsigned inPlace = 0) {
    plan::Command &c = *program_->add_commands();
    c.set_kernel(kernel);
    for (plan::Ref &ref : inputs)
      *c.add_inputs() = ref;
    *c.add_outputs() = output;
    if (inPlace)
      c.add_in_place(inPlace);
    c.set_phase(phase_);
    return c;
  }
  plan::Command &fused(const char *body, std::vector<plan::Ref> inputs, plan::Ref output,
                       unsigned inPlace = 0) {
    plan::Command &c = add("fused", std::move(inputs), output, inPlace);
    attr(c, "body").set_s(body);
    attr(c, "outputs").set_s("t0");
    return c;
  }
  static plan::Attr &attr(plan::Command &c, const char *name) {
    plan::Attr &a = *c.add_attrs();
    a.set_name(name);
    return a;
  }

  /// Starts after all compute so far; its done stands right behind it.
  plan::Command &collective(const char *kernel, std::vector<plan::Ref> inputs, plan::Ref output,
                            unsigned communicator, unsigned inPlace = 0) {
    uint32_t ready = plan_.events(), ended = ready + 1;
    bool waits = false;
    for (int i = program_->commands_size(); !waits && i-- > 0;)
      if (program_->commands(i).stream() == 0) {
        program_->mutable_commands(i)->add_signals(ready);
        waits = true;
      }
    plan_.set_events(ready + 2);
    int start = program_->commands_size();
    plan::Command &c = add(kernel, std::move(inputs), output, inPlace);
    attr(c, "ranks").set_i(ranks_);
    c.set_stream(communicator);
    c.set_communicator(communicator);
    c.add_signals(ended);
    if (waits)
      c.add_waits(ready);
    plan::Command &done = *program_->add_commands();
    done.set_kernel("collective_done");
    done.set_phase(phase_);
    done.add_waits(ended);
    return *program_->mutable_commands(start);
  }

  plan::Ref slice(uint32_t buffer) const {
    plan::Ref ref = smallRef(buffer, {n_});
    ref.set_rank_stride(uint64_t(n_) * 4);
    return ref;
  }
  static plan::Ref absent() {
    plan::Ref ref;
    ref.set_absent(true);
    return ref;
  }

  /// Where w lies whole, from here on.
  uint32_t parameters() {
    if (stage_ < 3)
      return w_;
    uint32_t whole = temporary("w.gathered", plan::COMMUNICATION, kElements);
    collective("all_gather_start", {smallRef(w_, {n_}), absent()}, smallRef(whole, {kElements}), 1);
    return whole;
  }

  /// sum(y * y) into `loss`, or added to it.
  uint32_t forward(bool more) {
    uint32_t y = temporary("y", plan::ACTIVATION, 6), sum = temporary("sum", plan::ACTIVATION, 1);
    fused("t0: f32 = x0 * x1;", {smallRef(x_, {2, 3}), smallRef(parameters(), {2, 3})},
          smallRef(y, {2, 3}));
    uint32_t squares = temporary("squares", plan::ACTIVATION, 6);
    fused("t0: f32 = x0 * x0;", {smallRef(y, {2, 3})}, smallRef(squares, {2, 3}));
    plan::Command &c = add("reduce_sum", {smallRef(squares, {2, 3})}, smallRef(sum, {1}));
    attr(c, "axes").mutable_ints()->add_v(0);
    attr(c, "keep_dims").set_i(0);
    c.mutable_inputs(0)->clear_dims();
    c.mutable_inputs(0)->add_dims(6);
    c.mutable_inputs(0)->add_dims(1);
    if (more)
      fused("t0: f32 = x0 + x1;", {smallRef(loss_, {1}), smallRef(sum, {1})}, smallRef(loss_, {1}),
            1);
    else
      fused("t0: f32 = x0;", {smallRef(sum, {1})}, smallRef(loss_, {1}));
    return y;
  }

  void fill(plan::Ref output) {
    plan::Command &c = fused("t0: f32 = 0.0;", {}, output);
    attr(c, "dims").mutable_ints()->add_v(output.dims(0));
  }

  void makeStep(unsigned k) {
    bool more = k > 0, last = k + 1 == accumulate_ || k == 2;
    begin(accumulate_ == 1 ? "train"
          : !more          ? "train_first"
          : last           ? "train_last"
                           : "train_middle",
          0);
    uint32_t y = forward(more);
    phase_ = 1;
    bool whole = stage_ < 2;
    uint32_t gradients = whole ? g_ : temporary("g.whole", plan::COMMUNICATION, kElements);
    if (whole && more) {
      fused("t0: f32 = x2 + 2 * x0 * x1;",
            {smallRef(y, {2, 3}), smallRef(x_, {2, 3}), smallRef(gradients, {2, 3})},
            smallRef(gradients, {2, 3}), 3);
    } else {
      plan::Ref rest = smallRef(gradients, {kElements - 6});
      rest.set_offset(24);
      fill(rest);
      fused("t0: f32 = 2 * x0 * x1;", {smallRef(y, {2, 3}), smallRef(x_, {2, 3})},
            smallRef(gradients, {2, 3}));
    }
    plan::Ref all = smallRef(gradients, {kElements}), sum = smallRef(g_, {n_});
    if (stage_ >= 2 && !more) {
      collective("reduce_scatter_start", {all}, sum, 2);
    } else if (stage_ >= 2) {
      plan::Ref part = smallRef(temporary("g.part", plan::COMMUNICATION, n_), {n_});
      collective("reduce_scatter_start", {all}, part, 2);
      fused("t0: f32 = x0 + x1;", {sum, part}, sum, 1);
    } else if (last && ranks_ > 1) {
      if (stage_ == 0)
        collective("all_reduce_start", {all}, all, 2, 1);
      else
        attr(collective("reduce_scatter_start", {all}, slice(gradients), 2), "in_place").set_i(1);
    }
    if (!last)
      return;
    if (ranks_ > 1)
      collective("all_reduce_start", {smallRef(loss_, {1})}, smallRef(loss_, {1}), 2, 1);
    output();
  }

  void makeUpdate() {
    begin("update", 2);
    plan::Ref w = stage_ == 1 || stage_ == 2 ? slice(w_) : smallRef(w_, {stage_ ? n_ : kElements});
    plan::Ref g = stage_ == 1 ? slice(g_) : smallRef(g_, {stage_ ? n_ : kElements});
    fused("t0: f32 = x0 - 0.125 * x1;", {w, g}, w, 1);
    plan::Ref whole = smallRef(w_, {kElements});
    if (stage_ == 1 || stage_ == 2)
      collective("all_gather_start", {w, whole}, whole, 1, 2);
  }

  void makeEval() {
    begin("eval", 0);
    forward(/*more=*/false);
    output();
  }

  void begin(const char *name, unsigned phase) {
    program_ = plan_.add_programs();
    program_->set_name(name);
    phase_ = phase;
  }
  void output() {
    plan::Output &output = *plan_.add_outputs();
    output.set_name("loss_sum");
    output.set_program(program_->name());
    *output.mutable_ref() = smallRef(loss_, {1});
  }

  plan::Plan plan_;
  unsigned ranks_, stage_;
  int64_t n_;
  unsigned accumulate_;
  uint32_t x_ = 0, w_ = 0, g_ = 0, m_ = 0, loss_ = 0;
  plan::Program *program_ = nullptr;
  unsigned phase_ = 0;
};

/// Calls `visit(ref)` for each operand that is there.
template <typename Command, typename Visit> void eachRef(Command &c, Visit visit) {
  for (const plan::Ref &ref : c.inputs())
    if (!ref.absent())
      visit(ref);
  for (const plan::Ref &ref : c.outputs())
    visit(ref);
}

} // namespace

void finishPlan(plan::Plan &plan) {
  uint64_t position = 0, end = 0;
  for (plan::Buffer &b : *plan.mutable_buffers()) {
    b.set_first(UINT64_MAX);
    b.set_last(0);
  }
  for (const plan::Program &program : plan.programs()) {
    std::vector<const plan::Command *> starts(plan.events());
    for (const plan::Command &c : program.commands()) {
      auto touch = [&](const plan::Ref &ref) {
        plan::Buffer &b = *plan.mutable_buffers(int(ref.buffer()));
        b.set_first(std::min(b.first(), position));
        b.set_last(position + 1);
      };
      eachRef(c, touch);
      if (c.communicator())
        starts[c.signals(0)] = &c;
      if (c.kernel() == "collective_done")
        eachRef(*starts[c.waits(0)], touch);
      ++position;
    }
  }
  for (plan::Buffer &b : *plan.mutable_buffers()) {
    if (b.persistent() || b.last() == 0) {
      b.set_first(0);
      b.set_last(b.persistent() ? position : 0);
    }
    b.set_offset(end);
    end += alignTo(b.bytes(), kAlignment);
  }
  plan.clear_spaces();
  plan.add_spaces()->set_bytes(end);
  plan.mutable_spaces(0)->set_lower_bound(findPeak(plan, 0).bytes);
  countVersions(plan);
}

plan::Plan rankPlan(unsigned ranks, unsigned stage, unsigned accumulate) {
  return Maker(ranks, stage, accumulate).run();
}

plan::Program &programOf(plan::Plan &plan, StringRef name) {
  for (plan::Program &program : *plan.mutable_programs())
    if (program.name() == name)
      return program;
  llvm_unreachable("no such program");
}

int findCommand(const plan::Plan &plan, StringRef program, StringRef kernel, int n) {
  const plan::Program *p = findProgram(plan, program);
  for (int i = 0; p && i < p->commands_size(); ++i)
    if (p->commands(i).kernel() == kernel && n-- == 0)
      return i;
  llvm_unreachable("no such command");
}

plan::Buffer &bufferOf(plan::Plan &plan, StringRef name) {
  for (plan::Buffer &b : *plan.mutable_buffers())
    if (b.name() == name)
      return b;
  llvm_unreachable("no such buffer");
}

} // namespace shardc
