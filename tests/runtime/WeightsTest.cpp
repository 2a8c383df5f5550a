// SPDX-License-Identifier: Apache-2.0
#include "runtime/Weights.h"
#include "FakeExecutor.h"
#include "TestFiles.h"
#include "ir/base/FileHash.h"
#include "runtime/Safetensors.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

struct WeightsTest : testing::Test {
  TemporaryFolder folder;
  plan::Plan plan = regressionPlan(2);
  FakeExecutor executor{plan};
  WeightsOptions options;
  const float *memory() { return static_cast<const float *>(executor.buffer(2)); }

  /// Both parameters lie in a model file: w at byte 3 (transposed, which for [1,2] moves nothing),
  /// the bias at 11.
  std::string modelFile() {
    float values[3] = {1.5, -2.5, 7};
    std::string bytes = "abc" + std::string(reinterpret_cast<char *>(values), 12);
    plan.mutable_model()->set_path("model.onnx");
    plan.mutable_model()->set_hash(fileHash(bytes));
    for (int i = 0; i < 2; ++i) {
      auto *source = plan.mutable_parameters(i)->mutable_source();
      source->set_kind(plan::ValueSource::FILE);
      source->set_file("model.onnx");
      source->set_offset(i == 0 ? 3 : 11);
      source->set_length(i == 0 ? 8 : 4);
      source->set_transposed(i == 0);
    }
    options.planPath = folder.path("m.plan");
    return folder.write("model.onnx", bytes);
  }
  std::string load() {
    auto weights = StartingWeights::open(plan, options);
    if (weights)
      llvm::cantFail(weights->fill(executor));
    return messageOf(std::move(weights));
  }
};

TEST_F(WeightsTest, ComeFromTheModelThatThePlanNames) {
  modelFile(); // found from the plan's folder
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[0], 1.5f);
  EXPECT_EQ(memory()[1], -2.5f);
  EXPECT_EQ(memory()[2], 7.f);
  plan.mutable_parameters(1)->mutable_source()->set_kind(plan::ValueSource::ZERO);
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[2], 0.f);
}

TEST_F(WeightsTest, AreTransposed) {
  std::string bytes;
  for (int i = 0; i < 5 * 40; ++i) {
    float value = i;
    bytes.append(reinterpret_cast<char *>(&value), 4);
  }
  auto *p = plan.mutable_parameters(0);
  modelFile();
  std::string path = folder.write("w.bin", bytes);
  p->set_dims(0, 5);
  p->set_dims(1, 40);
  p->mutable_source()->set_file("w.bin"); // beside the model
  p->mutable_source()->set_offset(0);
  p->mutable_source()->set_length(bytes.size());
  plan.mutable_parameters(1)->set_offset(200);
  plan.mutable_parameters(1)->mutable_source()->set_kind(plan::ValueSource::ZERO);
  EXPECT_EQ(load(), "no error");
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < 40; ++column)
      EXPECT_EQ(memory()[row * 40 + column], float(column * 5 + row));
}

// External weights may come after the plan.
TEST_F(WeightsTest, MayArriveLate) {
  modelFile();
  for (int i = 0; i < 2; ++i) {
    plan.mutable_parameters(i)->mutable_source()->set_kind(plan::ValueSource::ABSENT);
    plan.mutable_parameters(i)->mutable_source()->set_file("late.bin");
  }
  EXPECT_EQ(load(), "model.onnx: no values for 2 of 2 parameters: got none for w, b.bias");
  float values[4] = {0, 1.25, 8, 9};
  folder.write("late.bin", llvm::StringRef(reinterpret_cast<char *>(values) + 1, 15));
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[0], 1.25f);
  EXPECT_EQ(memory()[2], 9.f);
}

TEST_F(WeightsTest, RefuseAModelThatChanged) {
  std::string path = modelFile();
  folder.write("model.onnx", "other");
  EXPECT_EQ(load(), "model.onnx: the model file changed after the plan was made");
  plan.mutable_model()->clear_hash();
  EXPECT_EQ(load(),
            "model.onnx/w: weights lie past the end of the file: got 5 bytes, wanted at least 11");
  llvm::sys::fs::remove(path);
  EXPECT_EQ(load(), "model.onnx: weights cannot be opened: No such file or directory");
}

// The plan records absolute paths; what was moved is found beside the plan.
TEST_F(WeightsTest, AreFoundAfterAMove) {
  std::string path = modelFile();
  for (int i = 0; i < 2; ++i)
    plan.mutable_parameters(i)->mutable_source()->set_file(path);
  EXPECT_EQ(load(), "no error");
  for (int i = 0; i < 2; ++i)
    plan.mutable_parameters(i)->mutable_source()->set_file("/nowhere/model.onnx");
  EXPECT_EQ(load(), "no error");
  options.file = folder.path("other.onnx"); // --weights: there and nowhere else
  EXPECT_EQ(load(), "other.onnx: weights cannot be opened: No such file or directory");
}

TEST_F(WeightsTest, RefuseSizesThatDoNotFit) {
  modelFile();
  plan.mutable_parameters(0)->mutable_source()->set_length(4);
  EXPECT_EQ(
      load(),
      "model.onnx/w: size of weights does not fit the shape: got 4 bytes, wanted 8 for f32 1x2");
}

TEST_F(WeightsTest, ComeFromSafetensorsByAnyOfTheirNames) {
  double w[2] = {0.5, 0.25};
  float bias = 3;
  plan.mutable_parameters(0)->add_ties("shared.w");
  options.file = folder.path("w.safetensors");
  llvm::cantFail(writeSafetensors(
      options.file, {{"shared.w", DType::F64, {1, 2}, w}, {"b.bias", DType::F32, {1}, &bias}}));
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[1], 0.25f);
  EXPECT_EQ(memory()[2], 3.f);
  llvm::cantFail(writeSafetensors(
      options.file, {{"w", DType::F64, {2, 1}, w}, {"b.bias", DType::F32, {1}, &bias}}));
  EXPECT_EQ(load(), "w.safetensors/w: wrong shape: got 2x1, wanted 1x2");
  llvm::cantFail(writeSafetensors(options.file, {{"w", DType::F64, {1, 2}, w}}));
  EXPECT_EQ(load(), "w.safetensors: no values for 1 of 2 parameters: got none for b.bias");
}

TEST_F(WeightsTest, AreInitialisedOnlyWhenAsked) {
  plan.mutable_model()->set_path("m.onnx");
  EXPECT_EQ(load(), "m.onnx: no values for 2 of 2 parameters: got none for w, b.bias");
  options.deviation = 0.5;
  options.seed = 1;
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(llvm::cantFail(StartingWeights::open(plan, options)).initialised().vec(),
            (std::vector<std::string>{"w", "b.bias"}));
  float first = memory()[0];
  EXPECT_NE(first, 0.f);
  EXPECT_EQ(memory()[2], 0.f); // a bias
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[0], first);
  options.seed = 2;
  EXPECT_EQ(load(), "no error");
  EXPECT_NE(memory()[0], first);
  options.deviation = 0;
  EXPECT_EQ(load(), "no error");
  EXPECT_EQ(memory()[0], 0.f);
}

// 200 matrix elements: mean and deviation within four standard errors of what was asked for.
TEST_F(WeightsTest, AreDrawnFromANormalDistribution) {
  plan.mutable_parameters(0)->set_dims(1, 200);
  plan.mutable_parameters(1)->set_offset(200);
  options.deviation = 2;
  EXPECT_EQ(load(), "no error");
  double sum = 0, squares = 0;
  for (int i = 0; i < 200; ++i)
    sum += memory()[i], squares += memory()[i] * memory()[i];
  EXPECT_NEAR(sum / 200, 0, 4 * 2 / std::sqrt(200));
  EXPECT_NEAR(std::sqrt(squares / 200), 2, 4 * 2 / std::sqrt(400));
}

} // namespace
