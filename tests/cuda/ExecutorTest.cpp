// SPDX-License-Identifier: Apache-2.0
// The executor on a device, one rank, on plans written by hand: what the host computes, with graphs and without, again and again; errors.
#include "ir/base/Error.h"
#include "ir/plan/Scalars.h"
#include "passes/Defragment.h"
#include "passes/Machine.h"
#include "passes/emit/Arena.h"
#include "runtime/Trace.h"
#include "runtime/cuda/Executor.h"
#include "runtime/cuda/Kernel.h"
#include "tests/cuda/OnDevice.h"
#include "tests/plan/MovePlan.h"
#include "tests/runtime/RankPlan.h"

namespace shardc::test {
namespace {

TEST(CudaExecutor, TrainsTheSmallPlanAsTheHostDoes) {
  SHARDC_NEEDS_DEVICE();
  plan::Plan plan = smallPlan();
  auto device = llvm::cantFail(cuda::createExecutor(plan, {}, {}));
  auto host = llvm::cantFail(Executor::create(plan));
  for (Executor *executor : {device.get(), host.get()}) {
    float x[6] = {0, 1, 2, 3, 4, 5}, w[6] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    llvm::cantFail(executor->write(kX, 0, x, sizeof x));
    llvm::cantFail(executor->write(kParameters, 0, w, sizeof w));
    executor->scalars()[kLearningRate] = 0.125;
    for (int step = 0; step < 3; ++step)
      for (const char *program : {"train", "update"})
        ASSERT_EQ(messageOf(executor->run(executor->program(program))), "");
  }
  EXPECT_EQ(floats(*device, kParameters, 6), floats(*host, kParameters, 6));
  EXPECT_EQ(floats(*device, kLoss, 1), floats(*host, kLoss, 1));
  EXPECT_EQ(device->buffer(kX), nullptr);
  EXPECT_EQ(device->program("nothing"), -1);
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
    auto executor = llvm::cantFail(cuda::createExecutor(plan, {}, {}));
    Executor &x = *executor;
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
  DeviceMemory more(nullptr, kMore);
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
  auto executor = cuda::createExecutor(slicedPlan(2).plan, {}, {});
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

} // namespace
} // namespace shardc::test
