// SPDX-License-Identifier: Apache-2.0
// Several ranks on plans written by hand: on one device that they share, or by NCCL with a device for each; what one of them does wrong.
#include "ir/base/Error.h"
#include "ir/base/Half.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Local.h"
#include "runtime/cuda/Executor.h"
#include "tests/cuda/OnDevice.h"
#include "tests/runtime/RankPlan.h"

namespace shardc::test {
namespace {

/// Gathers slices, sums over ranks in slices and in whole; three streams, no kernels but these.
struct Exchange {
  plan::Plan plan;
  uint32_t slice, whole, parts, part, sum;

  explicit Exchange(unsigned ranks) {
    PlanWriter w(ranks);
    const int64_t n = kSliceElements * ranks;
    slice = w.buffer("slice", plan::PARAMETER, kSliceElements, true);
    whole = w.buffer("whole", plan::ACTIVATION, n, true);
    parts = w.buffer("parts", plan::ACTIVATION, n, true);
    part = w.buffer("part", plan::ACTIVATION, kSliceElements, true);
    sum = w.buffer("sum", plan::ACTIVATION, 7, true); // no multiple of the ranks
    w.program("train");
    plan::Command &gather = w.collective("all_gather_start", 1, {smallRef(slice, {kSliceElements})}, smallRef(whole, {n}));
    plan::Command &scatter = w.collective("reduce_scatter_start", 2, {smallRef(parts, {n})}, smallRef(part, {kSliceElements}));
    plan::Command &reduce = w.collective("all_reduce_start", 2, {smallRef(sum, {7})}, smallRef(sum, {7}));
    reduce.add_in_place(1);
    w.done(gather);
    w.done(scatter);
    w.done(reduce);
    plan = w.take();
  }
};

float valueOf(unsigned rank, int64_t i, int run) { return float((int64_t(rank) * 5 + i * 3 + run) % 17) - 8; }

std::vector<float> valuesOf(unsigned rank, int64_t n, int run) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i)
    values[i] = valueOf(rank, i, run);
  return values;
}

class CudaRanks : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Some, CudaRanks, testing::Values(1u, 2u, 3u, 4u), testing::PrintToStringParamName());

TEST_P(CudaRanks, ExchangeWhatTheyHave) {
  SHARDC_NEEDS_DEVICE();
  const unsigned ranks = GetParam();
  const Exchange e(ranks);
  const int64_t n = kSliceElements * ranks;
  auto group = makeLocalGroup(ranks);
  EXPECT_EQ(messageOf(runRanks(group, [&](Communicator &c) -> llvm::Error {
    auto executor = cuda::createExecutor(e.plan, {&c}, {});
    if (!executor)
      return executor.takeError();
    Executor &x = **executor;
    const unsigned r = c.rank();
    for (int run = 0; run < 4; ++run) {
      llvm::cantFail(x.write(e.slice, 0, valuesOf(r, kSliceElements, run).data(), 4 * kSliceElements));
      llvm::cantFail(x.write(e.parts, 0, valuesOf(r, n, run + 1).data(), 4 * n));
      llvm::cantFail(x.write(e.sum, 0, valuesOf(r, 7, run + 2).data(), 4 * 7));
      if (llvm::Error error = x.run(x.program("train")))
        return error;
      std::vector<float> whole = floats(x, e.whole, n), part = floats(x, e.part, kSliceElements), sum = floats(x, e.sum, 7);
      for (unsigned q = 0; q < ranks; ++q)
        for (int64_t i = 0; i < kSliceElements; ++i)
          EXPECT_EQ(whole[q * kSliceElements + i], valueOf(q, i, run)) << "rank " << r << ", run " << run;
      for (int64_t i = 0; i < kSliceElements; ++i) {
        float wanted = 0;
        for (unsigned q = 0; q < ranks; ++q)
          wanted += valueOf(q, r * kSliceElements + i, run + 1);
        EXPECT_EQ(part[i], wanted) << "rank " << r << ", run " << run;
      }
      for (int64_t i = 0; i < 7; ++i) {
        float wanted = 0;
        for (unsigned q = 0; q < ranks; ++q)
          wanted += valueOf(q, i, run + 2);
        EXPECT_EQ(sum[i], wanted) << "rank " << r << ", run " << run;
      }
    }
    return llvm::Error::success();
  })),
            "");
}

// A slice of f32 reaches all ranks as 16-bit floats, rounded to nearest even; lengths that are whole groups of 8 and others.
TEST_P(CudaRanks, RoundWhatTheyGather) {
  SHARDC_NEEDS_DEVICE();
  const unsigned ranks = GetParam();
  for (DType dtype : {DType::BF16, DType::F16})
    for (int64_t n : {int64_t(7), int64_t(4096), int64_t(100003)}) {
      PlanWriter w(ranks);
      const uint32_t slice = w.buffer("slice", plan::PARAMETER, n, true), whole = w.buffer("whole", plan::ACTIVATION, n * ranks, true);
      w.program("train");
      plan::Command &gather = w.collective("all_gather_start", 1, {smallRef(slice, {n})}, smallRef(whole, {n * ranks}, dtype));
      plan::Attr &to = *gather.add_attrs();
      to.set_name("to");
      to.set_s(toString(dtype).str());
      w.done(gather);
      const plan::Plan plan = w.take();
      auto valueAt = [](unsigned rank, int64_t i) { return (float(i % 1001) - 500.3f) * 0.37f * float(rank + 1); };
      auto group = makeLocalGroup(ranks);
      EXPECT_EQ(messageOf(runRanks(group, [&](Communicator &c) -> llvm::Error {
        auto executor = cuda::createExecutor(plan, {&c}, {});
        if (!executor)
          return executor.takeError();
        std::vector<float> own(n);
        for (int64_t i = 0; i < n; ++i)
          own[i] = valueAt(c.rank(), i);
        llvm::cantFail((*executor)->write(slice, 0, own.data(), 4 * n));
        for (int run = 0; run < 2; ++run)
          if (llvm::Error error = (*executor)->run(0))
            return error;
        std::vector<uint16_t> all(n * ranks);
        llvm::cantFail((*executor)->read(whole, 0, all.data(), 2 * n * ranks));
        int64_t wrong = 0;
        for (unsigned r = 0; r < ranks; ++r)
          for (int64_t i = 0; i < n; ++i) {
            const float value = valueAt(r, i);
            wrong += all[r * n + i] != (dtype == DType::F16 ? floatToHalf(value) : floatToBFloat(value));
          }
        EXPECT_EQ(wrong, 0) << toString(dtype).str() << ", " << n << " elements, rank " << c.rank();
        return llvm::Error::success();
      })),
                "");
    }
}

/// Losses of all steps, then the parameters that each rank has, end to end.
std::vector<float> train(const RankPlan &p, int steps, bool graphs, bool nccl = false) {
  auto group = makeLocalGroup(p.plan.ranks());
  std::vector<std::vector<float>> left(group.size());
  std::vector<float> losses;
  EXPECT_EQ(messageOf(runRanks(group, [&](Communicator &c) -> llvm::Error {
    cuda::DeviceOptions options;
    options.graphs = graphs;
    options.nccl = nccl;
    options.ordinal = nccl ? int(c.rank()) : 0;
    auto executor = cuda::createExecutor(p.plan, {&c}, options);
    if (!executor)
      return executor.takeError();
    Executor &x = **executor;
    setParameters(p, x);
    for (int step = 0; step < steps; ++step) {
      setInputs(p, x, step);
      for (const char *program : {"train", "update"})
        if (llvm::Error error = x.run(x.program(program)))
          return error;
      float loss = floats(x, p.loss, 1)[0];
      if (c.rank() == 0)
        losses.push_back(loss);
    }
    left[c.rank()] = floats(x, p.parameters, kSliceElements * (p.slices ? 1 : c.size()));
    return llvm::Error::success();
  })),
            "");
  for (unsigned r = 0; r < (p.slices ? group.size() : 1); ++r)
    losses.insert(losses.end(), left[r].begin(), left[r].end());
  return losses;
}

TEST_P(CudaRanks, TrainAsPlainLoopsDo) {
  SHARDC_NEEDS_DEVICE();
  constexpr int kSteps = 20;
  for (const RankPlan &p : {slicedPlan(GetParam()), inPlacePlan(GetParam())}) {
    std::vector<float> parameters, wanted = wantedLosses(GetParam(), kSteps, parameters);
    wanted.insert(wanted.end(), parameters.begin(), parameters.end());
    std::vector<float> got = train(p, kSteps, /*graphs=*/true);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
    EXPECT_EQ(train(p, kSteps, /*graphs=*/true), got) << "again";
    EXPECT_EQ(train(p, kSteps, /*graphs=*/false), got) << "without graphs";
  }
}

/// A group of one: the same graphs, registered memory and ends as with more.
TEST(CudaNccl, TrainsAsOneRankAlone) {
  SHARDC_NEEDS_DEVICE();
  for (const RankPlan &p : {slicedPlan(1), inPlacePlan(1)}) {
    std::vector<float> alone = train(p, 20, /*graphs=*/true);
    EXPECT_EQ(train(p, 20, /*graphs=*/true, /*nccl=*/true), alone);
    EXPECT_EQ(train(p, 20, /*graphs=*/false, /*nccl=*/true), alone) << "without graphs";
  }
}

/// Threads, each with a device of its own: with two ranks a sum has one order only.
TEST(CudaNccl, TrainsAsRanksThatShareADevice) {
  if (cuda::deviceCount() < 2)
    GTEST_SKIP() << "got " << cuda::deviceCount() << " CUDA devices, wanted 2";
  for (const RankPlan &p : {slicedPlan(2), inPlacePlan(2)}) {
    std::vector<float> shared = train(p, 20, /*graphs=*/false);
    EXPECT_EQ(train(p, 20, /*graphs=*/true, /*nccl=*/true), shared);
    EXPECT_EQ(train(p, 20, /*graphs=*/false, /*nccl=*/true), shared) << "without graphs";
  }
}

// A rank that never comes must not keep the others.
TEST(CudaNccl, EndsWhereARankDoesNotCome) {
  if (cuda::deviceCount() < 2)
    GTEST_SKIP() << "got " << cuda::deviceCount() << " CUDA devices, wanted 2";
  auto group = makeLocalGroup(2);
  std::string text;
  llvm::consumeError(runRanks(group, [&](Communicator &c) -> llvm::Error {
    if (c.rank() == 1) {
      llvm::cantFail(waitForAll(c)); // as if it had opened its device
      char id[128];
      (void)c.broadcast(0, id, sizeof id, 0);
      return userError("rank 1 gives up");
    }
    cuda::DeviceOptions options;
    options.nccl = true;
    auto executor = cuda::createExecutor(Exchange(2).plan, {&c}, options);
    text = executor ? "" : llvm::toString(executor.takeError());
    return userError(text);
  }));
  EXPECT_NE(text.find("gives up"), std::string::npos) << text;
}

// One rank gives up; the others, who wait for it, learn why.
TEST(CudaRanks, EndWhereOneGivesUp) {
  SHARDC_NEEDS_DEVICE();
  const Exchange e(3);
  auto group = makeLocalGroup(3);
  std::vector<std::string> texts(3);
  llvm::consumeError(runRanks(group, [&](Communicator &c) -> llvm::Error {
    auto executor = cuda::createExecutor(e.plan, {&c}, {});
    if (!executor)
      return executor.takeError();
    for (int run = 0; run < 3; ++run) {
      if (run == 2 && c.rank() == 1)
        return userError("l0/MatMul: broken");
      if (llvm::Error error = (*executor)->run(0)) {
        texts[c.rank()] = llvm::toString(std::move(error));
        return userError(texts[c.rank()]);
      }
    }
    return llvm::Error::success();
  }));
  for (unsigned r : {0, 2})
    EXPECT_TRUE(llvm::StringRef(texts[r]).starts_with("rank 1: l0/MatMul: broken")) << texts[r];
}

} // namespace
} // namespace shardc::test
