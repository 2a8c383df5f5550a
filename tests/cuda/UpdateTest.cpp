// SPDX-License-Identifier: Apache-2.0
// Gradient norm and optimizers on the device at sizes of many blocks, gradients in every type, slices of buckets;
// against the host's.
#include "ir/ops/Reference.h"
#include "tests/cuda/RunCommand.h"
#include <limits>

using namespace shardc;
using namespace shardc::test;

namespace {

class CudaUpdate : public testing::TestWithParam<DType> {};

std::vector<double> stepScalars() {
  std::vector<double> s(kNumScalars);
  s[kLearningRate] = 0.01, s[kBeta1] = 0.9, s[kBeta2] = 0.999, s[kEpsilon] = 1e-8, s[kWeightDecay] = 0.1,
  s[kMomentum] = 0.9;
  s[kBiasCorrection1] = 1 - 0.9 * 0.9, s[kBiasCorrection2] = 1 - 0.999 * 0.999, s[kMaxGradNorm] = 1, s[kRank] = 1;
  return s;
}

Tensor scalarsTensor(const std::vector<double> &s) { return Tensor::of<double>(DType::F64, {kNumScalars}, s); }

TEST_P(CudaUpdate, sumsSquares) {
  SHARDC_NEEDS_DEVICE();
  for (int64_t count : {1, 1000, 100003}) {
    TestCommand command{"sum_squares",
                        {},
                        {randomTensor(GetParam(), {count}, 1), randomTensor(GetParam(), {0}, 1),
                         randomTensor(DType::F32, {77}, 2), randomTensor(GetParam(), {2 * count}, 3)},
                        {Type(DType::F64, {4})}};
    auto wanted = llvm::cantFail(runByHost(command));
    auto got = runByDevice(command);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (int i : {0, 2, 3})
      EXPECT_NEAR((*got)[0].asDouble(i) / wanted[0].asDouble(i), 1, 1e-6);
    EXPECT_EQ((*got)[0].asDouble(1), 0);
  }
}

TEST_P(CudaUpdate, optimizers) {
  SHARDC_NEEDS_DEVICE();
  const DType param = GetParam() == DType::F64 ? DType::F64 : DType::F32;
  for (int64_t count : {5003, 4096})
    for (int64_t ranks : {1, 2})
      for (const char *kernel : {"adamw", "adam", "sgd"}) {
        const bool sgd = llvm::StringRef(kernel) == "sgd";
        TestCommand command{kernel, {{"decay_end", count * ranks - 1500}, {"ranks", ranks}}};
        command.scalars = stepScalars();
        command.in = {randomTensor(param, {count}, 1), randomTensor(GetParam(), {count}, 2),
                      randomTensor(param, {count}, 3, 0.1)};
        command.out = {Type(param, {count}), Type(param, {count})};
        command.inPlace = {{0, 0}, {1, 2}};
        if (!sgd) {
          Tensor v = randomTensor(param, {count}, 4, 0.1);
          std::vector<double> squares = toDoubles(v);
          for (double &x : squares)
            x *= x;
          command.in.push_back(fromDoubles(param, {count}, squares));
          command.out.push_back(Type(param, {count}));
          command.inPlace.push_back({2, 3});
        }
        command.in.push_back(Tensor::splat(DType::F64, {}, 0.7));
        command.in.push_back(scalarsTensor(command.scalars));
        expectSame(command, param == DType::F64 ? 1e-12 : 1e-5);
        if (param != DType::F32) // what plans round is an f32 master
          continue;
        for (DType rounded : {DType::BF16, DType::F16}) {
          command.attrs.set("rounded", toString(rounded).str());
          command.out.push_back(Type(rounded, {count}));
          auto got = runByDevice(command);
          ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
          EXPECT_TRUE(got->back() == fromDoubles(rounded, {count}, toDoubles(got->front()))) << kernel;
          command.out.pop_back();
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaUpdate, testing::Values(DType::F64, DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return toString(info.param).str(); });

TEST(CudaGradScale, ofManyBuckets) {
  SHARDC_NEEDS_DEVICE();
  TestCommand command{"grad_scale", {}, {Tensor::splat(DType::F32, {}, 40), scalarsTensor(stepScalars())}};
  for (unsigned i = 0; i < 700; ++i) {
    std::vector<double> squares(1 + i % 3, 0.5 * (i + 1));
    command.in.push_back(Tensor::of<double>(DType::F64, {int64_t(squares.size())}, squares));
  }
  command.out = {Type(DType::F64, {}), Type(DType::F64, {})};
  expectSame(command, 1e-12);
}

TEST(CudaLossScale, stepsAsOnTheHost) {
  SHARDC_NEEDS_DEVICE();
  const double inf = std::numeric_limits<double>::infinity();
  for (auto [square, good] : {std::pair(3e7, 5.0), {1e3, 1999.0}, {inf, 7.0}, {inf - inf, 7.0}}) {
    TestCommand command{"loss_scale", {{"initial", 65536.0}, {"unit", 1.0 / 64}}};
    command.in = {Tensor::splat(DType::F32, {}, 40), scalarsTensor(stepScalars()),
                  Tensor::of<double>(DType::F64, {4}, {-0.75, good, 11, 3})};
    for (unsigned i = 0; i < 300; ++i)
      command.in.push_back(Tensor::of<double>(DType::F64, {1}, {i == 200 ? square : 0.5 * i}));
    command.out = {Type(DType::F64, {}),
                   Type(DType::F64, {}),
                   Type(DType::F64, {}),
                   Type(DType::F64, {}),
                   Type(DType::F64, {kNumScalars}),
                   Type(DType::F64, {kNumScaleStates})};
    command.inPlace = {{5, 2}};
    expectSame(command, 1e-12);
  }
}

TEST(CudaLossScale, aSkippedUpdateChangesNothing) {
  SHARDC_NEEDS_DEVICE();
  for (const char *kernel : {"adamw", "adam", "sgd"}) {
    const int64_t count = 70001;
    TestCommand command{kernel, {{"decay_end", int64_t(1500)}}};
    command.scalars = stepScalars();
    command.scalars[kSkipUpdate] = 1;
    command.in = {randomTensor(DType::F32, {count}, 1),
                  Tensor::splat(DType::F16, {count}, std::numeric_limits<double>::infinity())};
    command.out = {Type(DType::F32, {count})};
    command.inPlace = {{0, 0}};
    for (unsigned k = 0, states = llvm::StringRef(kernel) == "sgd" ? 1 : 2; k < states; ++k) {
      command.in.push_back(randomTensor(DType::F32, {count}, 3 + k));
      command.out.push_back(Type(DType::F32, {count}));
      command.inPlace.push_back({1 + k, 2 + k});
    }
    command.in.push_back(Tensor::splat(DType::F64, {}, 0.7));
    command.in.push_back(scalarsTensor(command.scalars));
    auto got = runByDevice(command);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (auto [result, operand] : command.inPlace)
      EXPECT_TRUE((*got)[result] == *command.in[operand].storage) << kernel << " result " << result;
  }
}

} // namespace
