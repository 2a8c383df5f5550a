// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/MovePlan.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace shardc {
namespace {

struct Event {
  const char *name;
  unsigned units; ///< 0: the buffer ends
};

constexpr Event kEvents[] = {{"u1", 1}, {"s", 3},  {"s", 0}, {"u3", 1}, {"p", 2},  {"p", 0}, {"u2", 1},
                             {"u1", 0}, {"q", 2},  {"q", 0}, {"u3", 0}, {"r", 3},  {"r", 0}, {"u2", 0}};

/// What the buffer that `event` begins is filled with.
double valueOf(const Event &event) { return double(&event - kEvents + 1) / 64; }

class Builder {
public:
  explicit Builder(uint64_t unit) : unit_(unit), plan_(smallPlan()) {}

  plan::Plan build() {
    plan_.clear_spaces();
    plan::Program &train = *plan_.mutable_programs(0);
    google::protobuf::RepeatedPtrField<plan::Command> old;
    old.Swap(train.mutable_commands());
    const uint32_t total = add("total", plan::SCALAR, 4), part = add("part", plan::SCALAR, 4);
    fused("t0: f32 = 0.0;", {}, smallRef(total, {}));
    for (const Event &event : kEvents)
      if (event.units) {
        uint32_t buffer = add(event.name, plan::ACTIVATION, event.units * unit_);
        byName_[event.name] = buffer;
        plan_.mutable_buffers(buffer)->set_persistent(false);
        plan_.mutable_buffers(buffer)->set_first(position());
        fused("t0: f32 = " + std::to_string(valueOf(event)) + ";", {}, whole(buffer));
      } else {
        plan::Command &sum = *train.add_commands();
        sum.set_kernel("reduce_sum");
        attr(sum, "axes").mutable_ints()->add_v(0);
        attr(sum, "keep_dims").set_i(0);
        *sum.add_inputs() = whole(byName_[event.name]);
        *sum.add_outputs() = smallRef(part, {});
        plan_.mutable_buffers(byName_[event.name])->set_last(position());
        fused("t0: f32 = x0 + x1;", {smallRef(total, {}), smallRef(part, {})}, smallRef(total, {})).add_in_place(1);
      }
    const uint64_t shift = position();
    for (plan::Command &c : old)
      *train.add_commands() = std::move(c);
    fused("t0: f32 = x0 + x1;", {smallRef(kLoss, {}), smallRef(total, {})}, smallRef(kLoss, {})).add_in_place(1);
    for (uint32_t b : {kGradients, kY, kSquares, kEvalY}) {
      plan::Buffer &buffer = *plan_.mutable_buffers(b);
      const uint64_t more = shift + (b == kEvalY); // the last addition comes before evaluation, and the update
      buffer.set_first(buffer.first() + more);
      buffer.set_last(buffer.last() + shift + (b == kEvalY || b == kGradients));
    }
    uint64_t end = 0;
    for (const plan::Program &program : plan_.programs())
      end += program.commands_size();
    for (plan::Buffer &buffer : *plan_.mutable_buffers())
      if (buffer.persistent())
        buffer.set_last(end);
    countVersions(plan_);
    return std::move(plan_);
  }

private:
  uint64_t position() const { return plan_.programs(0).commands_size(); }

  uint32_t add(const char *name, plan::BufferKind kind, uint64_t bytes) {
    plan::Buffer &buffer = *plan_.add_buffers();
    buffer.set_name(name);
    buffer.set_kind(kind);
    buffer.set_bytes(bytes);
    buffer.set_persistent(true);
    return plan_.buffers_size() - 1;
  }

  plan::Ref whole(uint32_t buffer) const { return smallRef(buffer, {int64_t(plan_.buffers(buffer).bytes() / 4)}); }

  static plan::Attr &attr(plan::Command &command, const char *name) {
    plan::Attr &attr = *command.add_attrs();
    attr.set_name(name);
    return attr;
  }

  plan::Command &fused(const std::string &body, std::initializer_list<plan::Ref> inputs, const plan::Ref &output) {
    plan::Command &command = *plan_.mutable_programs(0)->add_commands();
    command.set_kernel("fused");
    attr(command, "body").set_s(body);
    attr(command, "outputs").set_s("t0");
    if (inputs.size() == 0)
      *attr(command, "dims").mutable_ints()->mutable_v() = output.dims();
    for (const plan::Ref &input : inputs)
      *command.add_inputs() = input;
    *command.add_outputs() = output;
    return command;
  }

  uint64_t unit_;
  plan::Plan plan_;
  StringMap<uint32_t> byName_;
};

} // namespace

plan::Plan movePlan(uint64_t unit) { return Builder(unit).build(); }

double movePlanSum(uint64_t unit) {
  double sum = 0;
  for (const Event &event : kEvents)
    sum += valueOf(event) * double(event.units * unit / 4);
  return sum;
}

} // namespace shardc
