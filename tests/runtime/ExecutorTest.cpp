// SPDX-License-Identifier: Apache-2.0
// The executor on a plan written by hand: runs, constants, allocation, and plans that it must
// refuse.
#include "runtime/Executor.h"
#include "ir/plan/Scalars.h"
#include "tests/plan/SmallPlan.h"
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"
#include <cstring>

namespace shardc {
namespace {

std::unique_ptr<Executor> load(const plan::Plan &plan) {
  auto executor = Executor::create(plan);
  EXPECT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  return executor ? std::move(*executor) : nullptr;
}

std::string refusal(const plan::Plan &plan) {
  auto executor = Executor::create(plan);
  return executor ? "" : host::messageOf(executor.takeError());
}

float *floats(Executor &executor, uint32_t buffer) {
  return static_cast<float *>(executor.buffer(buffer));
}

// y = x w, loss = sum(y^2), gradient 2 y x as the plan has it, w -= gradient / 8.
TEST(Executor, RunsPrograms) {
  plan::Plan plan = smallPlan();
  auto executor = load(plan);
  ASSERT_TRUE(executor);
  for (int i = 0; i < 6; ++i) {
    floats(*executor, kX)[i] = float(i);
    floats(*executor, kParameters)[i] = 0.5f;
  }
  int train = executor->program("train"), update = executor->program("update");
  ASSERT_GE(train, 0);
  ASSERT_GE(update, 0);
  EXPECT_EQ(executor->program("nothing"), -1);
  ASSERT_EQ(host::messageOf(executor->run(train)), "");
  EXPECT_FLOAT_EQ(floats(*executor, kLoss)[0], 0.25f * (0 + 1 + 4 + 9 + 16 + 25));
  ASSERT_EQ(host::messageOf(executor->run(update)), "");
  for (int i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(floats(*executor, kParameters)[i], 0.5f - 0.125f * 2 * (0.5f * i) * i);
}

TEST(Executor, StepsDoNotAllocate) {
  plan::Plan plan = smallPlan();
  auto executor = load(plan);
  ASSERT_TRUE(executor);
  ASSERT_EQ(host::messageOf(executor->run(0)), "");
  uint64_t before = host::allocations();
  for (int step = 0; step < 3; ++step)
    for (int program = 0; program < 3; ++program)
      if (llvm::Error e = executor->run(program))
        FAIL() << host::messageOf(std::move(e));
  EXPECT_EQ(host::allocations(), before);
}

TEST(Executor, ConstantsAreThereFromLoadOn) {
  plan::Plan plan = smallPlan();
  plan::ConstantData &constant = *plan.add_constants();
  const float values[6] = {1, 2, 3, 4, 5, 6};
  constant.set_buffer(kX);
  constant.set_data(std::string(reinterpret_cast<const char *>(values), sizeof values));
  auto executor = load(plan);
  ASSERT_TRUE(executor);
  EXPECT_EQ(std::memcmp(executor->buffer(kX), values, sizeof values), 0);
}

TEST(Executor, BuffersAreAlignedAndZero) {
  plan::Plan plan = smallPlan();
  auto executor = load(plan);
  ASSERT_TRUE(executor);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(executor->buffer(0)) % kAlignment, 0u);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(floats(*executor, kM)[i], 0);
  EXPECT_EQ(executor->scalars()[kLearningRate], 0);
}

TEST(Executor, NamesUnknownKernels) {
  plan::Plan plan = smallPlan();
  plan.add_strings("l0/Foo");
  command(plan, 0, 1).set_kernel("no_such_kernel");
  command(plan, 0, 1).set_place(2);
  EXPECT_EQ(refusal(plan), "l0/Foo: no host kernel is called no_such_kernel");
}

TEST(Executor, RefusesOperandsOutsideTheirBuffers) {
  auto damaged = [](auto damage) {
    plan::Plan plan = smallPlan();
    damage(*command(plan, 0, 0).mutable_inputs(0), plan);
    return refusal(plan);
  };
  EXPECT_EQ(damaged([](plan::Ref &, plan::Plan &) {}), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_buffer(99); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_dtype(77); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_offset(1); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_offset(4); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_offset(uint64_t(-4)); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_dims(0, -2); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_dims(0, INT64_MAX); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.add_strides(1); }), "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) {
              r.add_strides(INT64_MAX);
              r.add_strides(INT64_MAX);
            }),
            "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) {
              r.add_strides(-3);
              r.add_strides(1);
            }),
            "");
  EXPECT_NE(damaged([](plan::Ref &r, plan::Plan &) { r.set_absent(true); }), "");
  EXPECT_NE(
      damaged([](plan::Ref &, plan::Plan &p) { p.mutable_buffers(kX)->set_offset(1u << 30); }), "");
  EXPECT_NE(
      damaged([](plan::Ref &, plan::Plan &p) { p.mutable_buffers(kX)->set_bytes(uint64_t(-8)); }),
      "");
  EXPECT_NE(damaged([](plan::Ref &, plan::Plan &p) { p.mutable_buffers(kX)->set_space(3); }), "");
  EXPECT_NE(damaged([](plan::Ref &, plan::Plan &p) { p.set_scalars_buffer(kLoss); }), "");
  EXPECT_NE(
      damaged([](plan::Ref &, plan::Plan &p) { p.mutable_spaces(0)->set_kind(plan::Space::FILE); }),
      "");
  EXPECT_NE(damaged([](plan::Ref &, plan::Plan &p) {
              p.mutable_spaces(0)->set_bytes(uint64_t(1) << 62);
            }),
            "");
}

TEST(Kernels, EveryNameBindsToSomething) {
  for (llvm::StringRef name : host::kernelNames()) {
    EXPECT_NE(host::findKernel(name), nullptr) << name.str();
    // Nothing given: an error, not a crash. A collective's end is a command without operands.
    host::KernelRun run(name);
    EXPECT_EQ(host::messageOf(run.bind()) == "", name == "collective_done") << name.str();
  }
}

} // namespace
} // namespace shardc
