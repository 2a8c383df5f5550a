// SPDX-License-Identifier: Apache-2.0
// Plans of several streams and ranks on the executor: slices, collectives, events, pauses, disjoint memory.
#include "runtime/host/Stream.h"
#include "runtime/comm/Local.h"
#include "runtime/host/Parallel.h"
#include "tests/runtime/CommunicatorHarness.h"
#include "tests/runtime/KernelHarness.h"
#include "tests/runtime/RankPlan.h"
#include "gtest/gtest.h"
#include <cmath>

namespace shardc {
namespace {

constexpr int kSteps = 3;

/// What `kSteps` steps leave on each rank: the losses, then parameters and gradients as they are.
std::vector<std::vector<float>> train(const RankPlan &p, ExecutorOptions options = {}) {
  unsigned ranks = p.plan.ranks();
  Ends ends = makeLocalGroup(ranks);
  std::vector<std::vector<float>> results(ranks);
  std::vector<std::string> errors(ranks);
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    ExecutorOptions mine = options;
    mine.communicator = &end;
    auto executor = Executor::create(p.plan, mine);
    if (!executor) {
      errors[r] = host::messageOf(executor.takeError());
      return end.abort(errors[r]);
    }
    setParameters(p, **executor);
    for (int step = 0; step < kSteps; ++step) {
      setInputs(p, **executor, step);
      for (int program : {0, 1})
        if (llvm::Error e = (*executor)->run(program)) {
          errors[r] = host::messageOf(std::move(e));
          return;
        }
      results[r].push_back(*static_cast<float *>((*executor)->buffer(p.loss)));
    }
    for (uint32_t buffer : {p.parameters, p.gradients}) {
      auto *data = static_cast<float *>((*executor)->buffer(buffer));
      results[r].insert(results[r].end(), data, data + p.plan.buffers(buffer).bytes() / 4);
    }
  });
  for (unsigned r = 0; r < ranks; ++r)
    EXPECT_EQ(errors[r], "") << "rank " << r;
  return results;
}

void expectWanted(const RankPlan &p, const std::vector<std::vector<float>> &got) {
  std::vector<float> parameters, losses = wantedLosses(p.plan.ranks(), kSteps, parameters);
  for (unsigned r = 0; r < got.size(); ++r) {
    ASSERT_GE(got[r].size(), losses.size() + kSliceElements);
    for (int step = 0; step < kSteps; ++step)
      EXPECT_NEAR(got[r][step], losses[step], 1e-5 * losses[step]) << "rank " << r << ", step " << step;
    size_t first = p.slices ? r * kSliceElements : 0, n = p.slices ? kSliceElements : parameters.size();
    for (size_t i = 0; i < n; ++i)
      EXPECT_NEAR(got[r][kSteps + i], parameters[first + i], 1e-5 * (1 + std::fabs(parameters[first + i])))
          << "rank " << r << ", parameter " << first + i;
  }
}

class Ranks : public testing::TestWithParam<unsigned> {};

TEST_P(Ranks, TrainOnSlices) {
  RankPlan p = slicedPlan(GetParam());
  expectWanted(p, train(p));
}

TEST_P(Ranks, TrainInPlace) {
  RankPlan p = inPlacePlan(GetParam());
  expectWanted(p, train(p));
}

TEST_P(Ranks, PausesAndDisjointMemoryChangeNoBit) {
  for (const RankPlan &p : {slicedPlan(GetParam()), inPlacePlan(GetParam())}) {
    auto wanted = train(p);
    for (uint64_t seed : {0, 1})
      for (bool disjoint : {false, true}) {
        ExecutorOptions options;
        options.delaySeed = seed;
        options.disjoint = disjoint;
        EXPECT_EQ(train(p, options), wanted) << "seed " << seed << ", disjoint " << disjoint;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, Ranks, testing::Values(1u, 2u, 3u, 4u, 7u),
                         [](const auto &info) { return std::to_string(info.param); });

TEST(Streams, OneRankNeedsNoCommunicator) {
  RankPlan p = slicedPlan(1);
  auto executor = Executor::create(p.plan);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  setParameters(p, **executor);
  setInputs(p, **executor, 0);
  ASSERT_EQ(host::messageOf((*executor)->run(0)), "");
  std::vector<float> parameters;
  EXPECT_FLOAT_EQ(*static_cast<float *>((*executor)->buffer(p.loss)), wantedLosses(1, 1, parameters)[0]);
}

TEST(Streams, RunsDoNotAllocate) {
  RankPlan p = slicedPlan(1);
  auto executor = Executor::create(p.plan);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  llvm::consumeError((*executor)->run(0));
  uint64_t before = host::allocations();
  for (int i = 0; i < 20; ++i)
    for (int program : {0, 1})
      if (llvm::Error e = (*executor)->run(program))
        FAIL() << host::messageOf(std::move(e));
  EXPECT_EQ(host::allocations(), before);
}

TEST(Streams, ManyRunsLoseNoSignal) {
  RankPlan p = slicedPlan(1);
  auto executor = Executor::create(p.plan);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  setParameters(p, **executor);
  std::vector<float> parameters;
  for (int step = 0; step < 2000; ++step) {
    setInputs(p, **executor, step);
    ASSERT_EQ(host::messageOf((*executor)->run(0)), "");
    float loss = 0;
    for (int i = 0; i < kSliceElements; ++i)
      loss += std::pow(startOf(i) * inputOf(0, i, step), 2.0f);
    ASSERT_FLOAT_EQ(*static_cast<float *>((*executor)->buffer(p.loss)), loss) << step;
  }
}

#ifndef __SANITIZE_THREAD__
// The gather may still be on its way when the product reads what it brings.
TEST(Streams, MissingWaitsAreRealRaces) {
  RankPlan p = slicedPlan(2);
  p.plan.mutable_programs(0)->mutable_commands(1)->clear_waits();
  RankPlan whole = slicedPlan(2);
  auto wanted = train(whole);
  int different = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ExecutorOptions options;
    options.delaySeed = seed;
    different += train(p, options) != wanted;
  }
  EXPECT_GT(different, 5);
}
#endif

std::string refusal(const plan::Plan &plan, Communicator *communicator = nullptr) {
  ExecutorOptions options;
  options.communicator = communicator;
  auto executor = Executor::create(plan, options);
  return executor ? "" : host::messageOf(executor.takeError());
}

TEST(Streams, PlanAndGroupHaveOneSize) {
  Ends ends = makeLocalGroup(2);
  EXPECT_EQ(refusal(slicedPlan(4).plan, ends[0].get()).find("plan is for 4 ranks: got 2, wanted 4\nhint: "), 0u);
  EXPECT_EQ(refusal(slicedPlan(4).plan).find("plan is for 4 ranks: got 1, wanted 4\nhint: "), 0u);
  EXPECT_EQ(refusal(slicedPlan(2).plan, ends[1].get()), "");
}

TEST(Streams, WaitsHaveTheirSignals) {
  plan::Plan plan = twoStreamPlan();
  EXPECT_EQ(refusal(plan), "");
  command(plan, 0, 0).clear_signals();
  EXPECT_EQ(refusal(plan), "fused: waits for what nothing before it signals: event 0");
  command(plan, 0, 0).add_signals(0);
  command(plan, 0, 1).add_signals(0);
  EXPECT_EQ(refusal(plan), "fused: signals what is signalled already: event 0");
  plan = twoStreamPlan();
  command(plan, 0, 3).set_stream(4000000000u);
  EXPECT_EQ(refusal(plan), "fused: stream: got 4000000000, wanted below 16");
}

TEST(Streams, SlicesEndInTheirBuffer) {
  Ends ends = makeLocalGroup(2);
  RankPlan p = inPlacePlan(2);
  auto damaged = [&](unsigned rank, uint64_t stride) {
    plan::Plan plan = p.plan;
    command(plan, 1, 0).mutable_inputs(1)->set_rank_stride(stride);
    return refusal(plan, ends[rank].get());
  };
  EXPECT_EQ(damaged(0, 20), "");
  EXPECT_EQ(damaged(1, 20), "fused: operand reaches outside its buffer of 32 bytes");
  EXPECT_NE(damaged(1, 18), "");
  EXPECT_NE(damaged(1, UINT64_MAX), "");
  EXPECT_NE(damaged(1, UINT64_MAX - 3), "");
}

/// An index out of range on one rank: command 0 of a program of its own, on the stream.
plan::Plan faultyPlan(unsigned stream) {
  PlanWriter w(3);
  uint32_t table = w.buffer("table", plan::PARAMETER, 4, true), index = w.buffer("index", plan::INPUT, 2, true);
  uint32_t y = w.buffer("y", plan::ACTIVATION, 1, false), loss = w.buffer("loss", plan::SCALAR, 1, true);
  uint32_t other = w.buffer("other", plan::SCALAR, 1, true);
  w.program("train");
  plan::Command &gather = w.command("gather", stream, {smallRef(table, {4}), smallRef(index, {1}, DType::I64)},
                                    {smallRef(y, {1})});
  plan::Attr &axis = *gather.add_attrs();
  axis.set_name("axis");
  axis.set_i(0);
  // The others wait for the faulty rank in both.
  plan::Command &first = w.collective("all_reduce_start", 1, {smallRef(loss, {1})}, smallRef(loss, {1}));
  w.order(gather, first);
  w.done(first);
  w.collective("all_reduce_start", 2, {smallRef(other, {1})}, smallRef(other, {1}));
  return w.take();
}

TEST(Streams, AFaultEndsAllRanks) {
  for (unsigned stream : {0, 1, 3}) {
    plan::Plan plan = faultyPlan(stream);
    Ends ends = makeLocalGroup(3);
    std::vector<std::string> errors(3), again(3);
    onEachRank(ends, [&](Communicator &end, unsigned r) {
      ExecutorOptions options;
      options.communicator = &end;
      auto executor = Executor::create(plan, options);
      if (!executor) {
        errors[r] = "not created: " + host::messageOf(executor.takeError());
        return end.abort(errors[r]);
      }
      *static_cast<int64_t *>((*executor)->buffer(2)) = r == 2 ? 7 : 1;
      errors[r] = host::messageOf((*executor)->run(0));
      again[r] = host::messageOf((*executor)->run(0));
    });
    for (unsigned r = 0; r < 3; ++r) {
      EXPECT_EQ(errors[r].find("rank 2: gather: index out of range: got 7"), 0u) << errors[r];
      EXPECT_EQ(again[r], errors[r]);
    }
  }
}

TEST(Streams, AFaultOfOneRankAloneNamesNoRank) {
  plan::Plan plan = faultyPlan(1);
  plan.set_ranks(1);
  for (int i : {1, 3})
    command(plan, 0, i).mutable_attrs(0)->set_i(1);
  auto executor = Executor::create(plan);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  auto *index = static_cast<int64_t *>((*executor)->buffer(2));
  *index = 7;
  EXPECT_EQ(host::messageOf((*executor)->run(0)).find("gather: index out of range: got 7"), 0u);
  *index = 1; // and the next run is sound again
  EXPECT_EQ(host::messageOf((*executor)->run(0)), "");
}

TEST(Streams, ARunEndsWhenAnotherRankLeaves) {
  RankPlan p = slicedPlan(2);
  Ends ends = makeLocalGroup(2);
  std::string error;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ends[1]->abort("disk full");
  });
  ExecutorOptions options;
  options.communicator = ends[0].get();
  auto executor = Executor::create(p.plan, options);
  ASSERT_TRUE(bool(executor)) << host::messageOf(executor.takeError());
  EXPECT_EQ(host::messageOf((*executor)->run(0)), "rank 1: disk full");
  other.join();
}

TEST(Events, CarryOneRun) {
  host::Event event;
  event.signal(1);
  EXPECT_TRUE(event.wait(1));
  bool second = false;
  std::thread waits([&] { second = event.wait(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  event.signal(2);
  waits.join();
  EXPECT_TRUE(second);
  event.stop(3);
  EXPECT_FALSE(event.wait(3));
  EXPECT_EQ(host::nextRun((1u << 31) - 1), 1u);
}

TEST(Threads, AreShared) {
  int all = host::numThreads();
  EXPECT_EQ(host::threadsPerRank(1), all);
  EXPECT_EQ(host::threadsPerRank(1000), 1);
  EXPECT_EQ(host::threadsPerRank(2), std::max(1, all / 2));
  int other = 0;
  std::thread([&] {
    host::useThreads(1);
    other = host::numThreads();
  }).join();
  EXPECT_EQ(other, 1);
  EXPECT_EQ(host::numThreads(), all);
}

} // namespace
} // namespace shardc
