// SPDX-License-Identifier: Apache-2.0
// The loop of training on many ranks: rows, micro-steps, evaluation, stops and failures are those of one run, whatever it is
// cut into.
#include "FakeExecutor.h"
#include "TestFiles.h"
#include "runtime/Ranks.h"
#include "runtime/Safetensors.h"
#include "runtime/Trainer.h"
#include "runtime/comm/Local.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr int64_t kRows = 50;

struct TrainRanks : testing::Test {
  TemporaryFolder folder;
  TrainOptions options;
  std::vector<float> x;
  std::vector<int64_t> ids;

  // What a run leaves.
  std::vector<double> losses;
  std::vector<EvalReport> evals;
  std::vector<std::vector<int64_t>> runs; ///< [rank][program]
  std::vector<int64_t> updates;
  std::optional<TrainResults> results;

  // What goes wrong in it.
  int failingRank = -1;
  int64_t failAtStep = -1, stopAtStep = -1;
  std::atomic<bool> stop = false;

  void SetUp() override {
    for (int64_t i = 0; i < kRows; ++i) {
      x.push_back(float((i * 37) % 11) / 8 - 0.5f);
      x.push_back(float((i * 17) % 7) / 4 - 1);
      ids.push_back(i % 13 == 5 ? -1 : i % 10); // rows that do not count lie unevenly
    }
    options.data = {write("data", kRows)};
    options.maxSteps = 6;
    options.learningRate = 0.05;
  }
  std::string write(llvm::StringRef name, int64_t rows) {
    llvm::cantFail(writeSafetensors(folder.path(name), {{"x", DType::F32, {rows, 2}, x.data()},
                                                        {"ids", DType::I64, {rows}, ids.data()}}));
    return folder.path(name);
  }

  /// Batch x ranks x accumulate is 12 in all of them, so that all read the same rows in each step.
  llvm::Error run(Cut cut, int64_t batch) {
    plan::Plan plan = regressionPlan(batch, cut);
    losses.clear(), evals.clear();
    runs.assign(cut.ranks, {}), updates.assign(cut.ranks, 0);
    results.reset();
    auto data = TrainData::open(plan, options);
    if (!data)
      return data.takeError();
    auto group = makeLocalGroup(cut.ranks);
    return runRanks(group, [&](Communicator &c) { return runRank(plan, **data, c); });
  }
  llvm::Error runRank(const plan::Plan &plan, const TrainData &data, Communicator &c) {
    FakeExecutor executor(plan, &c);
    auto trainer = Trainer::create(data, executor, c);
    if (!trainer)
      return trainer.takeError();
    if (int(c.rank()) == failingRank)
      executor.failAtStep = failAtStep;
    if (llvm::Error error = (*trainer)->openOutputs())
      return error;
    if (llvm::Error error = waitForAll(c))
      return error;
    auto onStep = [&](const StepReport &r, int64_t) {
      losses.push_back(r.loss);
      stop = r.step == stopAtStep;
    };
    auto onEval = [&](int64_t, const EvalReport &r) { evals.push_back(r); };
    TrainHooks hooks;
    hooks.stop = &stop;
    if (c.rank() == 0)
      hooks.onStep = onStep, hooks.onEval = onEval;
    auto trained = (*trainer)->run(hooks);
    runs[c.rank()].assign(executor.runs, executor.runs + FakeExecutor::kPrograms);
    updates[c.rank()] = executor.updates;
    if (!trained)
      return trained.takeError();
    if (c.rank() == 0)
      results = *trained;
    return llvm::Error::success();
  }
};

TEST_F(TrainRanks, HaveTheLossesOfOne) {
  options.dumpGradients = folder.path("g");
  options.saveWeights = folder.path("w");
  llvm::cantFail(run({1, 0, 1}, 12));
  std::vector<double> want = losses;
  ASSERT_EQ(want.size(), 6u);
  float gradient[2], weights[2];
  auto read = [](const std::string &path, float *to) {
    auto file = llvm::cantFail(ArrayFile::open(path));
    std::memcpy(to, llvm::cantFail(file->data(*file->find("w"))), 8);
  };
  read(options.dumpGradients, gradient), read(options.saveWeights, weights);

  for (Cut cut : {Cut{1, 0, 2}, Cut{2, 0, 1}, Cut{2, 1, 1}, Cut{2, 2, 2}, Cut{3, 3, 1}, Cut{4, 3, 3}, Cut{3, 1, 4},
                  Cut{4, 2, 1}}) {
    SCOPED_TRACE(testing::Message() << cut.ranks << " ranks, stage " << cut.zero << ", " << cut.accumulate);
    llvm::cantFail(run(cut, 12 / cut.ranks / cut.accumulate));
    ASSERT_EQ(losses.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(losses[i], want[i], 1e-5 * want[i]) << i;
    float got[2];
    read(options.dumpGradients, got);
    EXPECT_NEAR(got[0], gradient[0], 1e-5);
    EXPECT_NEAR(got[1], gradient[1], 1e-5);
    read(options.saveWeights, got);
    EXPECT_NEAR(got[0], weights[0], 1e-5);
    EXPECT_NEAR(got[1], weights[1], 1e-5);
    int64_t k = cut.accumulate;
    for (const std::vector<int64_t> &r : runs)
      EXPECT_EQ(r, k == 1 ? (std::vector<int64_t>{6, 0, 0, 0, 6, 0})
                          : (std::vector<int64_t>{0, 6, 6 * (k - 2), 6, 6, 0}));
  }
}

// Seven batches of at most two rows: every rank runs `eval` as often as the others, each row counts once.
TEST_F(TrainRanks, EvaluateEveryRowOnce) {
  options.evalData = {write("eval", 13)};
  options.maxSteps = 1;
  options.learningRate = 0; // weights stay 0: the loss is the mean of ids^2
  double sum = 0, count = 0;
  for (int64_t row = 0; row < 13; ++row)
    if (ids[row] >= 0)
      sum += double(ids[row] * ids[row]), ++count;
  for (unsigned ranks : {1u, 2u, 3u, 4u, 5u, 8u, 12u}) {
    llvm::cantFail(run({ranks, ranks > 1 ? 1u : 0u, 1}, 2));
    ASSERT_EQ(evals.size(), 1u);
    EXPECT_NEAR(evals[0].loss, sum / count, 1e-12) << ranks;
    EXPECT_EQ(evals[0].samples, 13);
    EXPECT_EQ(evals[0].accuracy, 1.0);
    for (const std::vector<int64_t> &r : runs)
      EXPECT_EQ(r[FakeExecutor::kEval], (7 + ranks - 1) / ranks) << ranks;
  }
}

TEST_F(TrainRanks, StopAfterTheSameStep) {
  options.maxSteps = 1000;
  options.saveWeights = folder.path("w");
  stopAtStep = 3; // seen by whoever looks first; all agree
  llvm::cantFail(run({4, 3, 1}, 2));
  EXPECT_TRUE(results->interrupted);
  EXPECT_EQ(results->steps, 3);
  EXPECT_EQ(updates, std::vector<int64_t>(4, 3));
  EXPECT_EQ(messageOf(ArrayFile::open(options.saveWeights)), "no error");
}

TEST_F(TrainRanks, EndWhenOneFails) {
  options.outputDir = folder.path("out");
  failAtStep = 3;
  for (failingRank = 0; failingRank < 3; ++failingRank) {
    Exit code = Exit::Done;
    std::string text;
    llvm::handleAllErrors(run({3, 2, 1}, 4), [&](const UserError &error) { code = error.code(), text = error.text(); });
    EXPECT_EQ(text, "rank " + std::to_string(failingRank) + ": l0/MatMul: broken");
    EXPECT_EQ(code, Exit::Fault);
    EXPECT_EQ(updates, std::vector<int64_t>(3, 2));
    EXPECT_EQ((*llvm::MemoryBuffer::getFile(options.outputDir + "/log.jsonl"))->getBuffer().count('\n'), 2u);
  }
}

// What can be seen before the first step ends all ranks before it, with exit code 1.
TEST_F(TrainRanks, FailBeforeTheFirstStep) {
  options.saveWeights = folder.path("none/w"); // only rank 0 looks
  Exit code = Exit::Done;
  std::string text;
  llvm::handleAllErrors(run({3, 3, 1}, 4), [&](const UserError &error) { code = error.code(), text = error.text(); });
  EXPECT_NE(text.find("none/w: cannot be written: No such file"), std::string::npos) << text;
  EXPECT_EQ(code, Exit::BadInput);
  EXPECT_EQ(losses.size(), 0u);
  EXPECT_EQ(messageOf(run({4, 1, 4}, 4)),
            "data: too few rows: got 50, wanted at least 64 (batch 4 x ranks 4 x accumulate 4)");
}

} // namespace
