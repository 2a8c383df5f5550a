// SPDX-License-Identifier: Apache-2.0
// A plan that fits only if a buffer is moved: sound, and the same bits as in disjoint memory.
#include "passes/Defragment.h"
#include "ir/plan/Peak.h"
#include "passes/Machine.h"
#include "passes/emit/Arena.h"
#include "runtime/CheckRaces.h"
#include "tests/plan/MovePlan.h"
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"

namespace shardc {
namespace {

constexpr uint64_t kUnit = 4096;

Machine machine() { return llvm::cantFail(loadMachine("cpu")); }

plan::Plan packedPlan() {
  plan::Plan plan = movePlan(kUnit);
  emit::packSpace(plan);
  return plan;
}

plan::Plan fittedPlan() {
  plan::Plan plan = packedPlan();
  defragment(plan, plan.spaces(0).lower_bound(), machine());
  countVersions(plan);
  return plan;
}

std::vector<const plan::Command *> moves(const plan::Plan &plan) {
  std::vector<const plan::Command *> result;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      if (c.kernel() == "copy")
        result.push_back(&c);
  return result;
}

/// Under `--check-races`, two steps: "" or the error.
std::string racesOf(const plan::Plan &plan) {
  auto executor = createRaceChecked(plan, {});
  if (!executor)
    return host::messageOf(executor.takeError());
  for (int i = 0; i < 6; ++i) {
    static_cast<float *>((*executor)->buffer(kX))[i] = float(i + 1);
    static_cast<float *>((*executor)->buffer(kParameters))[i] = 0.5f;
  }
  for (int program : {0, 1, 0, 1, 2})
    if (llvm::Error e = (*executor)->run(program))
      return host::messageOf(std::move(e));
  return "";
}

TEST(Defragment, PackingAloneDoesNotFit) {
  plan::Plan plan = packedPlan();
  EXPECT_EQ(host::messageOf(checkPlan(plan)), "");
  uint64_t persistent = emit::persistentBytes(plan);
  EXPECT_EQ(plan.spaces(0).lower_bound(), persistent + 4 * kUnit);
  EXPECT_EQ(plan.spaces(0).bytes(), persistent + 5 * kUnit);
}

TEST(Defragment, OneMoveMakesItFit) {
  plan::Plan before = packedPlan(), plan = fittedPlan();
  EXPECT_EQ(host::messageOf(checkPlan(plan)), "");
  EXPECT_EQ(plan.spaces(0).bytes(), before.spaces(0).lower_bound());
  EXPECT_EQ(plan.spaces(0).method(), "defragment");
  auto list = moves(plan);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]->inputs(0).dims(0), int64_t(kUnit)); // not more than needed
  EXPECT_EQ(list[0]->moved_bytes(), 2.0 * kUnit);
  EXPECT_GT(list[0]->predicted_us(), 0);
  EXPECT_EQ(plan.strings(list[0]->place()), "defragment");
  const plan::Buffer &from = plan.buffers(list[0]->inputs(0).buffer()), &to = plan.buffers(list[0]->outputs(0).buffer());
  EXPECT_EQ(from.name(), to.name());
  EXPECT_EQ(from.last(), to.first() + 1);
  EXPECT_EQ(plan.programs(0).commands_size(), before.programs(0).commands_size() + 1);
}

TEST(Defragment, RunsAsInDisjointMemory) {
  plan::Plan plan = fittedPlan();
  EXPECT_EQ(racesOf(plan), "");
  auto executor = Executor::create(plan, {});
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  for (int i = 0; i < 6; ++i)
    static_cast<float *>((*executor)->buffer(kX))[i] = static_cast<float *>((*executor)->buffer(kParameters))[i] = 0;
  ASSERT_EQ(host::messageOf((*executor)->run(0)), "");
  EXPECT_EQ(*static_cast<float *>((*executor)->buffer(kLoss)), float(movePlanSum(kUnit)));
}

TEST(Defragment, LeavesAloneWhatFitsOrNever) {
  plan::Plan plan = packedPlan();
  const std::string before = serializePlan(plan);
  defragment(plan, plan.spaces(0).bytes(), machine());
  EXPECT_EQ(serializePlan(plan), before);
  defragment(plan, plan.spaces(0).lower_bound() - kAlignment, machine());
  EXPECT_EQ(serializePlan(plan), before);
}

TEST(Defragment, RepeatsItselfBitForBit) { EXPECT_EQ(serializePlan(fittedPlan()), serializePlan(fittedPlan())); }

TEST(Defragment, AMoveLeftOutOrLateIsRefused) {
  plan::Plan plan = fittedPlan();
  const uint32_t from = moves(plan)[0]->inputs(0).buffer(), to = moves(plan)[0]->outputs(0).buffer();
  plan::Plan unread = plan;
  for (plan::Command &c : *unread.mutable_programs(0)->mutable_commands())
    for (plan::Ref &ref : *c.mutable_inputs())
      if (c.kernel() != "copy" && ref.buffer() == to)
        ref.set_buffer(from);
  EXPECT_NE(host::messageOf(checkPlan(unread)).find("outside its lifetime"), std::string::npos);
  plan::Plan late = plan;
  auto &commands = *late.mutable_programs(0)->mutable_commands();
  for (int i = 0; i + 1 < commands.size(); ++i)
    if (commands[i].kernel() == "copy")
      commands.SwapElements(i, i + 1), i = commands.size();
  EXPECT_NE(host::messageOf(checkPlan(late)), "");
  // What lies at the new place too early is overwritten, and that shows.
  plan::Plan alias = plan;
  alias.mutable_buffers(to)->set_offset(alias.buffers(from).offset());
  EXPECT_NE(host::messageOf(checkPlan(alias)), "");
}

} // namespace
} // namespace shardc
