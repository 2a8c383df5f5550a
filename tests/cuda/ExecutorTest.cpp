// SPDX-License-Identifier: Apache-2.0
// The executor on a device, on plans written by hand: what the host computes, for any number of ranks that share a device, with
// graphs and without, again and again; errors.
#include "ir/base/Error.h"
#include "ir/base/Half.h"
#include "ir/plan/Scalars.h"
#include "passes/Defragment.h"
#include "passes/Machine.h"
#include "passes/emit/Arena.h"
#include "runtime/Ranks.h"
#include "runtime/Trace.h"
#include "runtime/comm/Local.h"
#include "runtime/cuda/Executor.h"
#include "runtime/cuda/Kernel.h"
#include "tests/cuda/OnDevice.h"
#include "tests/plan/MovePlan.h"
#include "tests/runtime/RankPlan.h"

namespace shardc {
namespace {

std::string messageOf(llvm::Error error) { return error ? llvm::toString(std::move(error)) : std::string(); }

/// "" or which of these kernels there are none of.
std::string missing(std::initializer_list<llvm::StringRef> kernels) {
  std::string names;
  for (llvm::StringRef kernel : kernels)
    if (!cuda::findKernel(kernel))
      names += " " + kernel.str();
  return names;
}

std::vector<float> floats(Executor &executor, uint32_t buffer, int64_t n) {
  std::vector<float> values(n);
  llvm::cantFail(executor.read(buffer, 0, values.data(), 4 * n));
  return values;
}

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
  if (std::string names = missing({"fused", "reduce_sum"}); !names.empty())
    GTEST_SKIP() << "no kernels:" << names;
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

TEST(CudaExecutor, TrainsTheSmallPlanAsTheHostDoes) {
  SHARDC_NEEDS_DEVICE();
  plan::Plan plan = smallPlan();
  auto device = cuda::createExecutor(plan, {}, {});
  if (!device) {
    std::string text = llvm::toString(device.takeError());
    ASSERT_NE(text.find("no CUDA kernels for"), std::string::npos) << text;
    GTEST_SKIP() << text;
  }
  auto host = llvm::cantFail(Executor::create(plan));
  for (Executor *executor : {device->get(), host.get()}) {
    float x[6] = {0, 1, 2, 3, 4, 5}, w[6] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    llvm::cantFail(executor->write(kX, 0, x, sizeof x));
    llvm::cantFail(executor->write(kParameters, 0, w, sizeof w));
    executor->scalars()[kLearningRate] = 0.125;
    for (int step = 0; step < 3; ++step)
      for (const char *program : {"train", "update"})
        ASSERT_EQ(messageOf(executor->run(executor->program(program))), "");
  }
  EXPECT_EQ(floats(**device, kParameters, 6), floats(*host, kParameters, 6));
  EXPECT_EQ(floats(**device, kLoss, 1), floats(*host, kLoss, 1));
  EXPECT_EQ((*device)->buffer(kX), nullptr);
  EXPECT_EQ((*device)->program("nothing"), -1);
}

// Buffers that change their place, as `defragment` has them do.
TEST(CudaExecutor, MovesBuffersAsTheHostDoes) {
  SHARDC_NEEDS_DEVICE();
  plan::Plan plan = movePlan(4096);
  emit::packSpace(plan);
  defragment(plan, plan.spaces(0).lower_bound(), llvm::cantFail(loadMachine("cpu")));
  ASSERT_EQ(plan.spaces(0).method(), "defragment");
  countVersions(plan);
  auto device = llvm::cantFail(cuda::createExecutor(plan, {}, {}));
  auto host = llvm::cantFail(Executor::create(plan));
  for (Executor *executor : {device.get(), host.get()}) {
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    llvm::cantFail(executor->write(kX, 0, ones, sizeof ones));
    llvm::cantFail(executor->write(kParameters, 0, ones, sizeof ones));
    for (int step = 0; step < 2; ++step)
      ASSERT_EQ(messageOf(executor->run(executor->program("train"))), "");
  }
  EXPECT_EQ(floats(*device, kLoss, 1), floats(*host, kLoss, 1));
  EXPECT_EQ(floats(*host, kLoss, 1)[0], float(movePlanSum(4096) + 6));
}

// What was begun runs in order, with scalars and inputs of its time, and `fetch` sees what lay there between.
TEST(CudaExecutor, WorksOnWhileTheHostGoesOn) {
  SHARDC_NEEDS_DEVICE();
  const plan::Plan plan = smallPlan();
  constexpr int kSteps = 12;
  std::vector<float> losses[2], left[2];
  for (bool ahead : {false, true}) {
    auto executor = cuda::createExecutor(plan, {}, {});
    if (!executor)
      GTEST_SKIP() << llvm::toString(executor.takeError());
    Executor &x = **executor;
    const float w[6] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    llvm::cantFail(x.write(kParameters, 0, w, sizeof w));
    std::vector<float> &loss = losses[ahead];
    loss.resize(kSteps);
    for (int step = 0; step < kSteps; ++step) {
      float row[6];
      for (int i = 0; i < 6; ++i)
        row[i] = float((step * 7 + i * 3) % 11) / 8;
      llvm::cantFail(x.write(kX, 0, row, sizeof row));
      x.scalars()[kLearningRate] = 0.125 / (step + 1);
      for (const char *program : {"train", "update"})
        llvm::cantFail(ahead ? x.start(x.program(program)) : x.run(x.program(program)));
      llvm::cantFail(x.fetch(kLoss, 0, &loss[step], 4));
      if (!ahead || step % 5 == 4)
        llvm::cantFail(x.finish());
    }
    llvm::cantFail(x.finish());
    llvm::cantFail(x.finish()); // nothing is left to do
    left[ahead] = floats(x, kParameters, 6);
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(left[1], left[0]);
}

// From the first replay on. What the driver tells counts for the whole device: nothing else may run on it.
TEST(CudaExecutor, TakesNoMoreMemory) {
  SHARDC_NEEDS_DEVICE();
  if (std::string names = missing({"fused", "reduce_sum"}); !names.empty())
    GTEST_SKIP() << "no kernels:" << names;
  const RankPlan p = inPlacePlan(1);
  auto executor = llvm::cantFail(cuda::createExecutor(p.plan, {}, {}));
  Executor &x = *executor;
  setParameters(p, x);
  uint64_t taken = 0;
  for (int step = 0; step < 40; ++step) {
    setInputs(p, x, step);
    for (const char *program : {"train", "update"})
      llvm::cantFail(x.run(x.program(program)));
    if (step == 1)
      taken = cuda::takenBeyond(0);
  }
  EXPECT_EQ(cuda::takenBeyond(0), taken);

  constexpr uint64_t kMore = uint64_t(64) << 20;
  test::DeviceMemory more(nullptr, kMore);
  EXPECT_EQ(cuda::takenBeyond(0), taken + kMore);
  EXPECT_EQ(cuda::takenBeyond(kMore), taken);
}

TEST(CudaExecutor, MemoryIsZeroAtFirstAndKeepsConstants) {
  SHARDC_NEEDS_DEVICE();
  PlanWriter w(1);
  uint32_t a = w.buffer("a", plan::ACTIVATION, 6, true), b = w.buffer("b", plan::ACTIVATION, 6, true);
  plan::Plan plan = w.take();
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  plan::ConstantData &constant = *plan.add_constants();
  constant.set_buffer(b);
  constant.set_data(std::string(reinterpret_cast<const char *>(values.data()), 24));
  auto executor = llvm::cantFail(cuda::createExecutor(plan, {}, {}));
  EXPECT_EQ(floats(*executor, a, 6), std::vector<float>(6));
  EXPECT_EQ(floats(*executor, b, 6), values);
  float part[2] = {7, 8};
  llvm::cantFail(executor->write(b, 8, part, sizeof part));
  EXPECT_EQ(floats(*executor, b, 6), (std::vector<float>{1, 2, 7, 8, 5, 6}));
}

// An index out of range: the host's words, and the executor goes on with better data.
TEST(CudaExecutor, NamesWhatItReadsOutOfRange) {
  SHARDC_NEEDS_DEVICE();
  PlanWriter w(1);
  uint32_t table = w.buffer("table", plan::PARAMETER, 4, true), ids = w.buffer("ids", plan::INPUT, 4, true);
  uint32_t rows = w.buffer("rows", plan::ACTIVATION, 2, true);
  w.program("train");
  plan::Command &command = w.command("gather", 0, {smallRef(table, {4}), smallRef(ids, {2}, DType::I64)}, {smallRef(rows, {2})});
  plan::Attr &axis = *command.add_attrs();
  axis.set_name("axis");
  axis.set_i(0);
  plan::Plan plan = w.take();
  plan.add_strings("l0/Gather");
  plan.mutable_programs(0)->mutable_commands(0)->set_place(plan.strings_size() - 1);
  plan::Input &input = *plan.add_inputs();
  input.set_buffer(ids);
  auto device = llvm::cantFail(cuda::createExecutor(plan, {}, {}));
  auto host = llvm::cantFail(Executor::create(plan));
  const float values[4] = {1, 2, 3, 4};
  llvm::cantFail(device->write(table, 0, values, sizeof values));
  llvm::cantFail(host->write(table, 0, values, sizeof values));
  for (int64_t bad : {9, 2, -5, 1}) { // in turns, eager and as a graph
    int64_t indices[2] = {3, bad};
    std::string texts[2];
    for (Executor *executor : {device.get(), host.get()}) {
      llvm::cantFail(executor->write(ids, 0, indices, sizeof indices));
      texts[executor == host.get()] = messageOf(executor->run(0));
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0].empty(), bad >= 0 && bad < 4) << texts[0];
  }
  EXPECT_EQ(floats(*device, rows, 2), (std::vector<float>{4, 2}));
}

// Stamps of a graph have times in each run.
TEST(CudaExecutor, TracesGraphs) {
  SHARDC_NEEDS_DEVICE();
  RankPlan p = slicedPlan(1);
  for (bool graphs : {true, false}) {
    Trace trace(p.plan);
    ExecutorOptions options;
    options.trace = &trace;
    cuda::DeviceOptions deviceOptions;
    deviceOptions.graphs = graphs;
    auto executor = llvm::cantFail(cuda::createExecutor(p.plan, options, deviceOptions));
    setParameters(p, *executor);
    setInputs(p, *executor, 0);
    for (int run = 0; run < 3; ++run) {
      ASSERT_EQ(messageOf(executor->run(0)), "");
      for (int c = 0; c < p.plan.programs(0).commands_size(); ++c) {
        CommandSpan span = trace.spans(0)[c];
        EXPECT_GE(span.start, 0) << c;
        EXPECT_GE(span.end, span.start) << c;
        EXPECT_LT(span.end, 1e6) << c; // a second, in microseconds
      }
    }
  }
}

// These need no device: what can be refused is, before one is opened.
TEST(CudaExecutor, ListsKernelsThatItLacks) {
  PlanWriter w(1);
  uint32_t a = w.buffer("a", plan::ACTIVATION, 4, true);
  w.program("train");
  w.command("zebra", 0, {smallRef(a, {4})}, {});
  w.command("collective_done", 0, {}, {});
  w.program("update");
  w.command("aardvark", 0, {}, {});
  w.command("zebra", 0, {}, {});
  plan::Plan plan = w.take();
  auto executor = cuda::createExecutor(plan, {}, {});
  ASSERT_FALSE(bool(executor));
  llvm::handleAllErrors(executor.takeError(), [](const UserError &mistake) {
    EXPECT_EQ(mistake.text(), "plan: no CUDA kernels for: aardvark, zebra");
    EXPECT_EQ(mistake.hint(), "run it with --device cpu");
  });
}

TEST(CudaExecutor, WantsAsManyRanksAsThePlan) {
  auto executor = cuda::createExecutor(Exchange(2).plan, {}, {});
  ASSERT_FALSE(bool(executor));
  EXPECT_NE(llvm::toString(executor.takeError()).find("plan is for 2 ranks: got 1"), std::string::npos);
}

TEST(CudaExecutor, SaysWhatDoesNotFit) {
  SHARDC_NEEDS_DEVICE();
  PlanWriter w(1);
  w.buffer("huge", plan::ACTIVATION, int64_t(1) << 45, true);
  plan::Plan plan = w.take();
  auto executor = cuda::createExecutor(plan, {}, {});
  ASSERT_FALSE(bool(executor));
  llvm::handleAllErrors(executor.takeError(), [](const UserError &mistake) {
    EXPECT_EQ(mistake.code(), Exit::DoesNotFit);
    EXPECT_TRUE(mistake.text().starts_with("space 0: cannot allocate")) << mistake.text().str();
  });
}

// One rank gives up; the others, who wait for it, learn why.
TEST(CudaExecutor, EndsTheOtherRanks) {
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
} // namespace shardc
