// SPDX-License-Identifier: Apache-2.0
// The loop around a step, on a model whose losses are worked out here from the formulas.
#include "runtime/Trainer.h"
#include "FakeExecutor.h"
#include "TestFiles.h"
#include "ir/base/Error.h"
#include "runtime/Safetensors.h"
#include "runtime/comm/Local.h"
#include "tests/runtime/KernelHarness.h"
#include "llvm/Support/JSON.h"
#include <csignal>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr int64_t kBatch = 2;

struct TrainerTest : testing::Test {
  TemporaryFolder folder;
  plan::Plan plan = regressionPlan(kBatch);
  std::vector<std::unique_ptr<Communicator>> solo = makeLocalGroup(1);
  FakeExecutor executor{plan};
  std::vector<float> x = {1, 2, 0.5, -1, 3, 0, -2, 1, 0.25, 4};
  std::vector<int64_t> ids = {3, 1, 4, 1, 5};
  TrainOptions options;
  std::vector<StepReport> reports;
  std::vector<EvalReport> evals;

  std::string data(int64_t rows = 5) {
    std::string path = folder.path("data.safetensors");
    llvm::cantFail(writeSafetensors(
        path, {{"x", DType::F32, {rows, 2}, x.data()}, {"ids", DType::I64, {rows}, ids.data()}}));
    return path;
  }
  void SetUp() override {
    options.data = {data()};
    options.shuffle = false;
    options.maxSteps = 5;
    options.learningRate = 0.05;
    options.schedule = ScheduleType::Linear;
  }
  llvm::Expected<TrainResults> run(const std::atomic<bool> *stop = nullptr) {
    auto opened = TrainData::open(plan, options);
    if (!opened)
      return opened.takeError();
    auto trainer = Trainer::create(**opened, executor, *solo[0]);
    if (!trainer)
      return trainer.takeError();
    if (llvm::Error error = (*trainer)->openOutputs())
      return error;
    auto onStep = [&](const StepReport &r, int64_t) { reports.push_back(r); };
    auto onEval = [&](int64_t, const EvalReport &r) { evals.push_back(r); };
    return (*trainer)->run({onStep, onEval, stop});
  }
  std::string read(llvm::StringRef path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "missing";
  }
};

TEST_F(TrainerTest, SaysHowMuchOfTheDeviceItUses) {
  for (plan::Program &program : *plan.mutable_programs()) {
    if (program.name() == "train" || program.name() == "update")
      program.add_commands()->set_flops(program.name() == "train" ? 4e3 : 2e3);
  }
  executor.peak = 1e9;
  llvm::cantFail(run());
  for (const StepReport &report : reports)
    EXPECT_NEAR(report.mfu * 1e9 * report.milliseconds * 1e-3, 6e3, 1e-3);
  executor.peak = 0; // nobody knows
  reports.clear();
  llvm::cantFail(run());
  EXPECT_EQ(reports[0].mfu, 0);
}

TEST_F(TrainerTest, FollowsTheFormulas) {
  options.outputDir = folder.path("out");
  options.dumpGradients = folder.path("g.safetensors");
  options.saveWeights = folder.path("w.safetensors");
  TrainResults results = llvm::cantFail(run());

  double w[2] = {0, 0}, meanLoss = 0, firstGradient[2];
  ASSERT_EQ(reports.size(), 5u);
  for (int step = 0; step < 5; ++step) {
    double loss = 0, gradient[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      int row = (step % 2) * 2 + k; // 5 rows make two steps an epoch; the last row is left out
      double error = w[0] * x[2 * row] + w[1] * x[2 * row + 1] - ids[row];
      loss += error * error / 2;
      for (int i = 0; i < 2; ++i)
        gradient[i] += error * x[2 * row + i];
    }
    double rate = 0.05 * (5 - step) / 5;
    EXPECT_EQ(reports[step].step, step + 1);
    EXPECT_NEAR(reports[step].loss, loss, 1e-5 * loss);
    EXPECT_NEAR(reports[step].learningRate, rate, 1e-15);
    EXPECT_NEAR(reports[step].gradNorm, std::hypot(gradient[0], gradient[1]), 1e-5);
    for (int i = 0; i < 2; ++i) {
      w[i] -= rate * gradient[i];
      if (step == 0)
        firstGradient[i] = gradient[i];
    }
    meanLoss += loss / 5;
  }
  EXPECT_EQ(results.steps, 5);
  EXPECT_FALSE(results.interrupted);
  EXPECT_NEAR(results.loss, meanLoss, 1e-5);
  EXPECT_EQ(results.epoch, 2.5);
  EXPECT_EQ(results.samples, 10);

  auto gradients = llvm::cantFail(ArrayFile::open(options.dumpGradients));
  ASSERT_EQ(gradients->arrays().size(), 1u); // "b.bias" is frozen
  EXPECT_EQ(gradients->find("w")->dims, (Dims{1, 2}));
  float values[2];
  std::memcpy(values, llvm::cantFail(gradients->data(*gradients->find("w"))), 8);
  EXPECT_NEAR(values[0], firstGradient[0], 1e-5);
  EXPECT_NEAR(values[1], firstGradient[1], 1e-5);

  auto weights = llvm::cantFail(ArrayFile::open(options.saveWeights));
  EXPECT_EQ(weights->arrays().size(), 2u);
  std::memcpy(values, llvm::cantFail(weights->data(*weights->find("w"))), 8);
  EXPECT_NEAR(values[0], w[0], 1e-5);
  EXPECT_NEAR(values[1], w[1], 1e-5);
  EXPECT_EQ(read(options.saveWeights), read(options.outputDir + "/model.safetensors"));
}

TEST_F(TrainerTest, IsTheSameOnADevice) {
  options.evalData = {data()};
  options.evalSteps = 2;
  TrainResults host = llvm::cantFail(run());
  std::vector<StepReport> steps = std::move(reports);
  reports.clear();
  FakeExecutor device(plan);
  device.onDevice = true;
  auto opened = llvm::cantFail(TrainData::open(plan, options));
  auto trainer = llvm::cantFail(Trainer::create(*opened, device, *solo[0]));
  llvm::cantFail(trainer->openOutputs());
  auto onStep = [&](const StepReport &r, int64_t) { reports.push_back(r); };
  TrainResults results = llvm::cantFail(trainer->run({onStep, {}, nullptr}));
  ASSERT_EQ(reports.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(reports[i].loss, steps[i].loss);
    EXPECT_EQ(reports[i].gradNorm, steps[i].gradNorm);
  }
  ASSERT_TRUE(host.eval && results.eval);
  EXPECT_EQ(results.eval->loss, host.eval->loss);
  EXPECT_EQ(results.eval->accuracy, host.eval->accuracy);
}

TEST_F(TrainerTest, EndsWhereADeviceFails) {
  executor.onDevice = executor.deviceError = true;
  llvm::Error error = run().takeError();
  EXPECT_TRUE(error.isA<UserError>());
  EXPECT_EQ(messageOf(std::move(error)), "cudaMemcpy: broken");
}

TEST_F(TrainerTest, WritesLogAndResults) {
  options.outputDir = folder.path("deep/er/out");
  options.evalData = options.data;
  options.evalSteps = 2;
  llvm::cantFail(run());
  llvm::SmallVector<llvm::StringRef> lines;
  std::string text = read(options.outputDir + "/log.jsonl");
  llvm::StringRef(text).rtrim().split(lines, '\n');
  ASSERT_EQ(lines.size(), 8u); // five steps; evaluated after 2, 4 and at the end
  size_t steps = 0;
  for (llvm::StringRef line : lines) {
    auto json = llvm::cantFail(llvm::json::parse(line));
    const llvm::json::Object &object = *json.getAsObject();
    if (object.get("eval_loss"))
      continue;
    EXPECT_EQ(object.size(), 6u);
    EXPECT_EQ(object.getInteger("step"), reports[steps].step);
    EXPECT_NEAR(*object.getNumber("loss"), reports[steps].loss, 1e-8 * reports[steps].loss);
    EXPECT_EQ(object.getNumber("learning_rate"), reports[steps].learningRate);
    EXPECT_TRUE(object.getNumber("step_ms") && object.getNumber("samples_per_second") &&
                object.getNumber("grad_norm"));
    ++steps;
  }
  EXPECT_TRUE(lines[2].starts_with("{\"step\": 2, \"eval_loss\": ")) << lines[2].str();
  auto results = llvm::cantFail(llvm::json::parse(read(options.outputDir + "/train_results.json")));
  for (const char *key : {"epoch", "train_loss", "train_runtime", "train_samples_per_second",
                          "train_steps_per_second", "eval_loss", "eval_accuracy"})
    EXPECT_TRUE(results.getAsObject()->getNumber(key)) << key;
}

// Five rows in batches of two: the sixth place is filled with a target that does not count.
TEST_F(TrainerTest, EvaluatesEveryRowOnce) {
  options.evalData = options.data;
  options.maxSteps = 1;
  options.learningRate = 0; // weights stay 0: the loss is the mean of ids^2
  llvm::cantFail(run());
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_NEAR(evals[0].loss, (9 + 1 + 16 + 1 + 25) / 5.0, 1e-9);
  EXPECT_EQ(evals[0].samples, 5);
  EXPECT_EQ(evals[0].accuracy, 1.0); // "correct" of the fake counts all rows
}

TEST_F(TrainerTest, AllocatesNothingInAStep) {
  options.outputDir = folder.path("out");
  options.maxSteps = 9; // over several epochs, shuffled
  options.shuffle = true;
  auto opened = llvm::cantFail(TrainData::open(plan, options));
  std::unique_ptr<Trainer> trainer = llvm::cantFail(Trainer::create(*opened, executor, *solo[0]));
  llvm::cantFail(trainer->openOutputs());
  uint64_t after[9];
  auto onStep = [&](const StepReport &r, int64_t) { after[r.step - 1] = host::allocations(); };
  llvm::cantFail(trainer->run({onStep, {}, nullptr}));
  EXPECT_GT(after[0], 0u);
  EXPECT_EQ(after[8], after[0]);
}

TEST_F(TrainerTest, CountsEpochs) {
  options.maxSteps = 0;
  options.epochs = 1.5;
  EXPECT_EQ(llvm::cantFail(run()).steps, 3);
}

TEST_F(TrainerTest, StopsOnNan) {
  options.stopOnNan = true;
  executor.nanAtStep = 3;
  options.outputDir = folder.path("out");
  auto results = run();
  ASSERT_FALSE(bool(results));
  std::string message;
  llvm::handleAllErrors(results.takeError(), [&](const UserError &error) {
    EXPECT_EQ(error.code(), Exit::Fault);
    message = error.text().str();
  });
  EXPECT_EQ(message, "step 3: loss is not finite: got nan, wanted a number");
  EXPECT_EQ(executor.updates, 2); // the third update did not happen
  EXPECT_EQ(llvm::StringRef(read(options.outputDir + "/log.jsonl")).count('\n'), 2u);
}

TEST_F(TrainerTest, GoesOnWithNanUnlessTold) {
  executor.nanAtStep = 3;
  options.outputDir = folder.path("out");
  EXPECT_EQ(llvm::cantFail(run()).steps, 5);
  EXPECT_NE(read(options.outputDir + "/log.jsonl").find("{\"step\": 3, \"loss\": null,"),
            std::string::npos);
}

TEST_F(TrainerTest, SavesWhenInterrupted) {
  options.saveWeights = folder.path("w.safetensors");
  std::atomic<bool> stop = true;
  TrainResults results = llvm::cantFail(run(&stop));
  EXPECT_TRUE(results.interrupted);
  EXPECT_EQ(results.steps, 0);
  EXPECT_EQ(messageOf(ArrayFile::open(options.saveWeights)), "no error");
}

// A limit on the size of files stands for a disk that fills up in the middle of a line.
TEST_F(TrainerTest, AFullDiskLeavesWholeLines) {
  options.outputDir = folder.path("out");
  llvm::cantFail(run());
  const std::string whole = read(options.outputDir + "/log.jsonl");
  const uint64_t second = whole.find('\n', whole.find('\n') + 1) + 1;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {second + 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto results = run();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(messageOf(std::move(results)), "out/log.jsonl: cannot be written: File too large");
  const std::string left = read(options.outputDir + "/log.jsonl");
  EXPECT_EQ(llvm::StringRef(left).count('\n'), 2u);
  EXPECT_EQ(left.back(), '\n');
}

TEST_F(TrainerTest, RefusesBadDataBeforeTheFirstStep) {
  options.data = {data(1)};
  EXPECT_EQ(messageOf(run()), "data.safetensors: too few rows: got 1, wanted at least 2 (batch 2 x "
                              "ranks 1 x accumulate 1)");
  ids[4] = 10;
  options.data = {data()};
  EXPECT_EQ(messageOf(run()),
            "data.safetensors/ids: value out of range in row 4: got 10, wanted 0 to 9 or -1");
}

TEST_F(TrainerTest, RefusesOutputsThatCannotBeWritten) {
  options.outputDir = folder.write("file", "text");
  EXPECT_EQ(messageOf(run()), "file: cannot be written: Not a directory");
  options.outputDir.clear();
  options.saveWeights = folder.path("none/w.safetensors");
  EXPECT_EQ(messageOf(run()), "none/w.safetensors: cannot be written: No such file or directory");
}

} // namespace
