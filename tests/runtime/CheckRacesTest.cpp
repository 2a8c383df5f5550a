// SPDX-License-Identifier: Apache-2.0
// Sound plans pass the comparison with disjoint memory; what shares memory that it must not is found and named.
#include "runtime/CheckRaces.h"
#include "runtime/comm/Local.h"
#include "tests/runtime/CommunicatorHarness.h"
#include "tests/runtime/KernelHarness.h"
#include "tests/runtime/RankPlan.h"
#include "gtest/gtest.h"
#include <cmath>

namespace shardc {
namespace {

/// Errors of the ranks after some steps.
std::vector<std::string> check(const RankPlan &p, uint64_t delaySeed) {
  unsigned ranks = p.plan.ranks();
  Ends planned = makeLocalGroup(ranks), disjoint = makeLocalGroup(ranks);
  std::vector<std::string> errors(ranks);
  onEachRank(planned, [&](Communicator &end, unsigned r) {
    auto executor = createRaceChecked(p.plan, {&end, disjoint[r].get(), delaySeed});
    if (!executor) {
      errors[r] = "not created: " + host::messageOf(executor.takeError());
      end.abort(errors[r]);
      return disjoint[r]->abort(errors[r]);
    }
    setParameters(p, **executor);
    for (int step = 0; step < 3 && errors[r].empty(); ++step) {
      setInputs(p, **executor, step);
      for (int program : {0, 1})
        if (errors[r].empty())
          errors[r] = host::messageOf((*executor)->run(program));
    }
  });
  return errors;
}

TEST(CheckRaces, SoundPlansPass) {
  for (unsigned ranks : {1, 2, 4})
    for (uint64_t seed : {0, 5})
      for (const RankPlan &p : {slicedPlan(ranks), inPlacePlan(ranks)})
        EXPECT_EQ(check(p, seed), std::vector<std::string>(ranks)) << ranks << " ranks, seed " << seed;
}

uint32_t find(const plan::Plan &plan, llvm::StringRef name) {
  for (int i = 0; i < plan.buffers_size(); ++i)
    if (plan.buffers(i).name() == name)
      return i;
  return ADD_FAILURE() << "no buffer " << name.str(), 0;
}

TEST(CheckRaces, OverlapsAreFound) {
  RankPlan p = slicedPlan(2);
  uint64_t at = p.plan.buffers(find(p.plan, "w.grad.whole")).offset();
  // The gradient may lie over the weights, which were read before.
  p.plan.mutable_buffers(find(p.plan, "w.whole"))->set_offset(at);
  EXPECT_EQ(check(p, 0), std::vector<std::string>(2));
  // But not over y, which the squares read later.
  p = slicedPlan(2);
  p.plan.mutable_buffers(find(p.plan, "y"))->set_offset(at);
  for (const std::string &error : check(p, 0)) {
    EXPECT_NE(error.find(": check-races: program train: buffer loss_sum, byte "), std::string::npos) << error;
    EXPECT_EQ(error.find("rank "), 0u) << error;
  }
}

TEST(CheckRaces, OneRankAlone) {
  plan::Plan plan = smallPlan();
  auto run = [&](plan::Plan &plan) {
    auto executor = createRaceChecked(plan, {});
    if (!executor)
      return host::messageOf(executor.takeError());
    for (int i = 0; i < 6; ++i) {
      static_cast<float *>((*executor)->buffer(kX))[i] = float(i + 1);
      static_cast<float *>((*executor)->buffer(kParameters))[i] = 0.5f;
    }
    for (int program : {0, 1, 2})
      if (llvm::Error e = (*executor)->run(program))
        return host::messageOf(std::move(e));
    return std::string();
  };
  EXPECT_EQ(run(plan), "");
  // The squares overwrite y, which the gradient still needs; the update brings that into the parameters.
  plan.mutable_buffers(kSquares)->set_offset(plan.buffers(kY).offset());
  std::string error = run(plan);
  EXPECT_EQ(error.find("check-races: program update: buffer layer.0, byte "), 0u) << error;
  EXPECT_NE(error.find("as with disjoint memory"), std::string::npos) << error;
}

TEST(CheckRaces, MemoryThatACommandOverwritesInPlaceStaysShared) {
  plan::Plan plan = smallPlan();
  // A copy of the parameters' buffer, at its place: the update's result.
  plan::Buffer updated = plan.buffers(kParameters);
  updated.set_name("layer.0.updated");
  *plan.add_buffers() = updated;
  command(plan, 1, 0).mutable_outputs(0)->set_buffer(plan.buffers_size() - 1);
  ExecutorOptions options;
  options.disjoint = true;
  auto executor = Executor::create(plan, options);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  EXPECT_EQ((*executor)->buffer(plan.buffers_size() - 1), (*executor)->buffer(kParameters));
  // All else lies apart, with a gap.
  for (uint32_t a = 0; a < kNumSmallBuffers; ++a)
    for (uint32_t b = 0; b < kNumSmallBuffers; ++b) {
      auto *first = static_cast<char *>((*executor)->buffer(a)), *second = static_cast<char *>((*executor)->buffer(b));
      if (a != b && first <= second) {
        EXPECT_LT(first + plan.buffers(a).bytes(), second) << a << " " << b;
      }
    }
}

TEST(CheckRaces, DisjointMemoryForgets) {
  plan::Plan plan = smallPlan();
  // The gradient is read before it is written: in planned memory it is that of the step before.
  plan.mutable_programs(0)->mutable_commands()->SwapElements(1, 3);
  *command(plan, 0, 1).mutable_inputs(0) = smallRef(kSquares, {2, 3});
  for (bool disjoint : {false, true}) {
    ExecutorOptions options;
    options.disjoint = disjoint;
    auto executor = Executor::create(plan, options);
    ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
    auto *x = static_cast<float *>((*executor)->buffer(kX)), *w = static_cast<float *>((*executor)->buffer(kParameters));
    x[0] = w[0] = 1;
    for (int step = 0; step < 2; ++step) {
      ASSERT_EQ(host::messageOf((*executor)->run(0)), "");
      ASSERT_EQ(host::messageOf((*executor)->run(1)), ""); // the gradient lives across this border
      EXPECT_EQ(std::isnan(w[0]), disjoint);
    }
  }
}

} // namespace
} // namespace shardc
