// SPDX-License-Identifier: Apache-2.0
// A plan is untrusted: whatever numbers stand in it, the executor refuses it or binds it inside its memory. (Most of these
// plans would not pass checkPlan; the executor must not count on it for its own safety.)
#include "runtime/comm/Local.h"
#include "tests/runtime/KernelHarness.h"
#include "tests/runtime/RankPlan.h"
#include "gtest/gtest.h"
#include <random>

namespace shardc {
namespace {

class Damage {
public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  /// Changes one to three numbers.
  void apply(plan::Plan &plan) {
    for (int n = 1 + pick(3); n-- > 0;)
      pick(5) ? damageCommand(plan) : damageBuffer(plan);
  }

private:
  uint64_t pick(uint64_t n) { return n ? random_() % n : 0; }
  /// Small, near a power of two, or anything.
  uint64_t number() {
    uint64_t value = random_();
    switch (pick(4)) {
    case 0:
      return value % 40;
    case 1:
      return (uint64_t(1) << value % 64) - pick(3);
    case 2:
      return -(value % 40);
    default:
      return value;
    }
  }
  void damageBuffer(plan::Plan &plan) {
    plan::Buffer &buffer = *plan.mutable_buffers(pick(plan.buffers_size()));
    switch (pick(4)) {
    case 0:
      return buffer.set_offset(number());
    case 1:
      return buffer.set_bytes(number());
    case 2:
      return buffer.set_space(number());
    default:
      return plan.set_scalars_buffer(number());
    }
  }
  void damageRef(plan::Ref &ref) {
    switch (pick(7)) {
    case 0:
      return ref.set_buffer(pick(2) ? pick(8) : number());
    case 1:
      return ref.set_offset(number());
    case 2:
      return ref.set_dtype(pick(10));
    case 3:
      return ref.set_rank_stride(number());
    case 4:
      return ref.set_absent(true);
    case 5:
      return pick(2) || !ref.dims_size() ? ref.add_dims(number()) : ref.set_dims(pick(ref.dims_size()), number());
    default:
      return ref.add_strides(number());
    }
  }
  void damageCommand(plan::Plan &plan) {
    plan::Program &program = *plan.mutable_programs(pick(plan.programs_size()));
    plan::Command &command = *program.mutable_commands(pick(program.commands_size()));
    uint64_t kind = pick(12);
    if (kind < 4 && command.inputs_size())
      return damageRef(*command.mutable_inputs(pick(command.inputs_size())));
    if (kind < 7 && command.outputs_size())
      return damageRef(*command.mutable_outputs(pick(command.outputs_size())));
    switch (kind) {
    case 7:
      return command.set_communicator(number());
    case 8:
      return command.set_stream(number());
    case 9:
      return pick(2) ? command.add_waits(number()) : command.add_signals(number());
    case 10:
      return command.add_in_place(number());
    default:
      if (command.attrs_size())
        command.mutable_attrs(pick(command.attrs_size()))->set_i(number());
    }
  }

  std::mt19937_64 random_;
};

TEST(Executor, DamagedPlansDoNoHarm) {
  auto ends = makeLocalGroup(2);
  int refused = 0, loaded = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    plan::Plan plan = (seed % 2 ? slicedPlan(2) : inPlacePlan(2)).plan;
    Damage(seed).apply(plan);
    ExecutorOptions options;
    options.communicator = ends[seed % 3 == 0].get();
    options.disjoint = seed % 5 == 0;
    auto executor = Executor::create(plan, options);
    if (!executor) {
      EXPECT_NE(host::messageOf(executor.takeError()), "");
      ++refused;
      continue;
    }
    ++loaded;
    // Every operand lies in its buffer.
    for (const plan::Program &program : plan.programs())
      for (const plan::Command &command : program.commands())
        for (const plan::Ref &ref : command.inputs())
          if (!ref.absent()) {
            auto *begin = static_cast<char *>((*executor)->buffer(ref.buffer()));
            auto *at = static_cast<char *>((*executor)->at(ref));
            EXPECT_TRUE(at >= begin && at <= begin + plan.buffers(ref.buffer()).bytes()) << "seed " << seed;
          }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(loaded, 300);
}

} // namespace
} // namespace shardc
