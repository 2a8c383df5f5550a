// SPDX-License-Identifier: Apache-2.0
// A small T5 with dropout on ranks that share a device: every run from the start leaves the same losses, bit by bit, and the host's
// nearly. What races does so now and then only, so runs are many, short ones (what happens at load) and long ones.
#include "frontend/Importer.h"
#include "runtime/Mix.h"
#include "passes/Pipeline.h"
#include "runtime/Ranks.h"
#include "runtime/ScalarSlots.h"
#include "runtime/StepPrograms.h"
#include "runtime/Weights.h"
#include "runtime/comm/Local.h"
#include "runtime/cuda/Executor.h"
#include "tests/cuda/OnDevice.h"

using namespace shardc;
using namespace shardc::test;

namespace {

struct Cut {
  unsigned ranks, zero, accumulate;
};
void PrintTo(const Cut &cut, std::ostream *os) {
  *os << cut.ranks << " ranks, stage " << cut.zero << ", accumulate " << cut.accumulate;
}

class CudaStress : public testing::TestWithParam<Cut> {
protected:
  void SetUp() override {
    SHARDC_NEEDS_DEVICE();
    const std::string path = SHARDC_SOURCE_DIR "/tests/models/tiny-t5/ts17-loss-dropout.onnx";
    auto model = OnnxModel::open(path, {});
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    ImportOptions imports;
    imports.dims = {{"batch", 4}, {"src", 7}, {"tgt", 5}};
    auto graph = importOnnx(**model, imports, nullptr);
    ASSERT_TRUE(bool(graph)) << llvm::toString(graph.takeError());
    CompileOptions options;
    options.ranks = GetParam().ranks;
    options.zero = GetParam().zero;
    options.accumulate = GetParam().accumulate;
    plan::Model described;
    described.set_path(path);
    described.set_hash((*model)->hash().str());
    auto compiled = compile(std::move(*graph), described, options);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    plan = std::move(*compiled->plan);
    auto opened = StartingWeights::open(plan, {});
    ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
    weights.emplace(std::move(*opened));
  }

  /// Tokens, and masks of ones.
  llvm::Error feed(Executor &executor, uint64_t seed) {
    for (const plan::Input &input : plan.inputs()) {
      std::vector<int64_t> values(numElements(llvm::ArrayRef<int64_t>(input.dims().data(), input.dims_size())), 1);
      for (size_t i = 0; i < values.size() && input.low() < input.high(); ++i)
        values[i] = input.low() + int64_t(mix(seed + i) % uint64_t(input.high() - input.low()));
      if (llvm::Error error = executor.write(input.buffer(), 0, values.data(), 8 * values.size()))
        return error;
    }
    return llvm::Error::success();
  }

  llvm::Error trainRank(Executor &executor, Communicator &c, int steps, std::vector<double> *losses) {
    auto train = TrainPrograms::find(plan, executor);
    if (!train)
      return train.takeError();
    auto update = StepProgram::find(plan, executor, "update");
    if (!update)
      return update.takeError();
    fillRank(executor.scalars(), c.rank());
    if (llvm::Error error = weights->fill(executor))
      return error;
    if (llvm::Error error = waitForAll(c))
      return error;
    for (int step = 0; step < steps; ++step) {
      fillScalars(executor.scalars(), {}, 1e-3, step, step == 0);
      int64_t micro = 0;
      for (int program : train->microSteps) {
        fillShardIndex(executor.scalars(), micro, c.size(), c.rank());
        if (llvm::Error error = feed(executor, mix(step * 1000 + micro++ * 100 + c.rank())))
          return error;
        if (llvm::Error error = executor.run(program))
          return error;
      }
      if (llvm::Error error = train->last.fetch())
        return error;
      if (llvm::Error error = executor.run(update->index))
        return error;
      if (llvm::Error error = update->fetch())
        return error;
      if (llvm::Error error = executor.finish())
        return error;
      if (losses)
        losses->insert(losses->end(), {train->last.results().loss(), update->results().gradNorm});
    }
    return waitForAll(c);
  }

  /// Loss and norm of each step.
  std::vector<double> train(int steps, bool onHost = false) {
    auto group = makeLocalGroup(GetParam().ranks);
    std::vector<double> losses;
    llvm::Error error = runRanks(group, [&](Communicator &c) -> llvm::Error {
      ExecutorOptions options;
      options.communicator = &c;
      auto executor = onHost ? Executor::create(plan, options) : cuda::createExecutor(plan, options, {});
      if (!executor)
        return executor.takeError();
      return trainRank(**executor, c, steps, c.rank() == 0 ? &losses : nullptr);
    });
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
    return losses;
  }

  plan::Plan plan;
  std::optional<StartingWeights> weights;
};

TEST_P(CudaStress, ShortRunsAreTheSame) {
  constexpr int kSteps = 3, kRuns = 25;
  const std::vector<double> first = train(kSteps), host = train(kSteps, /*onHost=*/true);
  ASSERT_EQ(first.size(), size_t(2 * kSteps));
  ASSERT_EQ(host.size(), first.size());
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_NEAR(first[i], host[i], 2e-5 * (1 + std::abs(host[i]))) << (i % 2 ? "norm" : "loss") << " of step " << i / 2;
  for (int run = 1; run < kRuns; ++run)
    EXPECT_EQ(train(kSteps), first) << "run " << run;
}

TEST_P(CudaStress, LongRunsAreTheSame) {
  constexpr int kSteps = 200;
  const std::vector<double> first = train(kSteps);
  ASSERT_EQ(first.size(), size_t(2 * kSteps));
  EXPECT_EQ(train(kSteps), first);
}

INSTANTIATE_TEST_SUITE_P(Cuts, CudaStress,
                         testing::Values(Cut{1, 0, 1}, Cut{2, 0, 2}, Cut{2, 1, 1}, Cut{2, 2, 2}, Cut{2, 3, 1}, Cut{4, 3, 2}, Cut{4, 1, 2}));

} // namespace
