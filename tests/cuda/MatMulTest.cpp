// SPDX-License-Identifier: Apache-2.0
// Products on the device in every type and layout, at sizes that tensor cores take and at odd ones, against the host's
// in f64.
#include "ir/ops/Reference.h"
#include "ir/ops/Infer.h"
#include "tests/cuda/RunCommand.h"
#include <cmath>
#include <cmath>

using namespace shardc;
using namespace shardc::test;

namespace {

class CudaMatMul : public testing::TestWithParam<DType> {
protected:
  double tolerance() const {
    return GetParam() == DType::BF16 ? 2e-2 : GetParam() == DType::F16 ? 3e-3 : GetParam() == DType::F32 ? 1e-4 : 1e-10;
  }
  DType wide() const { return byteSize(GetParam()) == 2 ? DType::F32 : GetParam(); }
};

TEST_P(CudaMatMul, everyTransposition) {
  SHARDC_NEEDS_DEVICE();
  const int64_t sizes[][3] = {{128, 64, 96}, {37, 51, 13}, {1, 40, 8}, {40, 1, 16}, {16, 24, 1}, {1, 1, 40}};
  for (auto [m, n, k] : sizes)
    for (int64_t ta : {0, 1})
      for (int64_t tb : {0, 1})
        for (DType out : {GetParam(), wide()}) {
          TestCommand command{"matmul", {{"transpose_a", ta}, {"transpose_b", tb}}};
          command.in = {randomTensor(GetParam(), ta ? Dims{k, m} : Dims{m, k}, 1),
                        randomTensor(GetParam(), tb ? Dims{n, k} : Dims{k, n}, 2)};
          command.out = {Type(out, {m, n})};
          expectSame(command, tolerance() * 4);
        }
}

TEST_P(CudaMatMul, accumulates) {
  SHARDC_NEEDS_DEVICE();
  for (DType out : {GetParam(), wide()}) {
    TestCommand command{
        "matmul",
        {},
        {randomTensor(GetParam(), {64, 72}, 1), randomTensor(GetParam(), {72, 80}, 2), randomTensor(out, {64, 80}, 3)}};
    command.out = {Type(out, {64, 80})};
    command.inPlace = {{0, 2}};
    expectSame(command, tolerance() * 4);
  }
}

TEST_P(CudaMatMul, addsOtherMemory) {
  SHARDC_NEEDS_DEVICE();
  TestCommand in{"matmul",
                 {},
                 {randomTensor(GetParam(), {64, 72}, 1), randomTensor(GetParam(), {72, 80}, 2),
                  randomTensor(GetParam(), {64, 80}, 3)}};
  in.out = {Type(GetParam(), {64, 80})};
  TestCommand apart = in;
  in.inPlace = {{0, 2}};
  auto wanted = runByDevice(in), got = runByDevice(apart);
  ASSERT_TRUE(bool(wanted)) << llvm::toString(wanted.takeError());
  ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
  EXPECT_EQ(compare((*got)[0], (*wanted)[0], 0), "");
}

/// What a sum of k terms of about 1 in f32 may be off by: tensor cores add 16 at once, and cut off what is below the last place
/// of the sum so far, which is of the size of sqrt(k).
double slackOfSums(int64_t k) { return double(k) / 16 * std::sqrt(double(k)) * 0x1p-23; }

/// Sums, c and bias are rounded once, at the end: within half a unit of the last place (of numbers of 1, or
/// their own) of what f64 says, and what sums of f32 add to that. A product that is rounded before c is added
/// is off by units.
TEST_P(CudaMatMul, roundsOnce) {
  SHARDC_NEEDS_DEVICE();
  if (byteSize(GetParam()) != 2)
    GTEST_SKIP() << "16-bit types only";
  const double unit = GetParam() == DType::BF16 ? 1.0 / 128 : 1.0 / 1024;
  const int64_t sizes[][3] = {{64, 80, 72}, {512, 384, 640}, {256, 1024, 4096}};
  for (auto [m, n, k] : sizes)
    for (unsigned choice = 0; choice < 6; ++choice) {
      const bool bias = choice & 1, c = choice >= 2, inPlace = choice >= 4;
      TestCommand command{"matmul", {{"transpose_b", int64_t(1)}}};
      command.in = {randomTensor(GetParam(), {m, k}, 1), randomTensor(GetParam(), {n, k}, 2)};
      command.in.push_back(c ? OperandView(randomTensor(GetParam(), {m, n}, 3)) : OperandView());
      if (bias)
        command.in.push_back(randomTensor(GetParam(), {n}, 4));
      command.out = {Type(GetParam(), {m, n})};
      if (inPlace)
        command.inPlace = {{0, 2}};
      auto wanted = runByHost(command), got = runByDevice(command);
      ASSERT_TRUE(bool(wanted)) << llvm::toString(wanted.takeError());
      ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
      double worst = 0;
      for (int64_t i = 0; i < m * n; ++i) {
        const double w = (*wanted)[0].asDouble(i);
        const double ulp = std::ldexp(unit, std::max(std::ilogb(w), 0));
        worst = std::max(worst, (std::fabs((*got)[0].asDouble(i) - w) - slackOfSums(k)) / ulp);
      }
      EXPECT_LT(worst, 0.51) << "size " << m << "x" << n << "x" << k << (bias ? " bias" : "")
                             << (c ? inPlace ? " c in place" : " c" : "");
    }
}

/// Every choice of bias, c (elsewhere or y itself) and ReLU, in tensor cores' sizes and odd ones.
TEST_P(CudaMatMul, epilogues) {
  SHARDC_NEEDS_DEVICE();
  const int64_t sizes[][3] = {{128, 64, 96}, {37, 51, 13}, {6, 16, 0}};
  for (auto [m, n, k] : sizes)
    for (DType out : {GetParam(), wide()})
      for (unsigned choice = 1; choice < 12; ++choice) {
        const bool bias = choice & 1, relu = choice & 2, c = choice >= 4, inPlace = choice >= 8;
        SCOPED_TRACE("size " + std::to_string(m) + (bias ? " bias" : "") + (relu ? " relu" : "") +
                     (c ? inPlace ? " c in place" : " c" : ""));
        TestCommand command{"matmul", {{"transpose_b", int64_t(1)}}};
        if (relu)
          command.attrs.set("act", "relu");
        command.in = {randomTensor(GetParam(), {m, k}, 1), randomTensor(GetParam(), {n, k}, 2)};
        command.in.push_back(c ? OperandView(randomTensor(out, {m, n}, 3)) : OperandView());
        if (bias)
          command.in.push_back(randomTensor(GetParam(), {n}, 4));
        command.out = {Type(out, {m, n})};
        if (inPlace)
          command.inPlace = {{0, 2}};
        expectSame(command, tolerance() * 4);
      }
}

/// Batches in one call and in several, rows of blocks that share b.
TEST_P(CudaMatMul, epiloguesOfBatches) {
  SHARDC_NEEDS_DEVICE();
  const Dims batches[][2] = {{{3, 2}, {}}, {{2, 1, 3}, {5, 1}}};
  for (auto &[inA, inB] : batches) {
    Dims a = inA, b = inB, y = *broadcastDims(inA, inB);
    a.append({24, 32}), b.append({32, 40}), y.append({24, 40});
    TestCommand command{"matmul", {{"act", "relu"}}};
    command.in = {randomTensor(GetParam(), a, 1), randomTensor(GetParam(), b, 2), randomTensor(GetParam(), y, 3),
                  randomTensor(GetParam(), {40}, 4)};
    command.out = {Type(GetParam(), y)};
    expectSame(command, tolerance() * 4);
  }
}

TEST_P(CudaMatMul, batches) {
  SHARDC_NEEDS_DEVICE();
  struct Batch {
    Dims a, b, y;
  };
  // The last dims are [24, 32] [32, 40].
  const Batch batches[] = {
      {{3, 2}, {3, 2}, {3, 2}}, {{3, 1}, {2}, {3, 2}}, {{}, {4}, {4}}, {{4}, {}, {4}}, {{2, 1, 3}, {5, 1}, {2, 5, 3}}};
  for (const Batch &batch : batches) {
    auto with = [](Dims dims, int64_t rows, int64_t columns) {
      dims.push_back(rows);
      dims.push_back(columns);
      return dims;
    };
    TestCommand command{
        "matmul",
        {},
        {randomTensor(GetParam(), with(batch.a, 24, 32), 1), randomTensor(GetParam(), with(batch.b, 32, 40), 2)}};
    command.out = {Type(GetParam(), with(batch.y, 24, 40))};
    expectSame(command, tolerance() * 4);
  }
}

/// Heads inside of rows, as attention's products would take them: [B, S, H, D] seen as [B, H, S, D].
TEST_P(CudaMatMul, batchesOfHeads) {
  SHARDC_NEEDS_DEVICE();
  const int64_t b = 2, s = 17, h = 3, d = 8;
  const Dims dims = {b, h, s, d}, strides = {s * h * d, d, h * d, 1};
  TestCommand command{"matmul", {{"transpose_b", int64_t(1)}}};
  command.in.emplace_back(randomTensor(GetParam(), {b, s, h, d}, 1), dims, strides, 0);
  command.in.emplace_back(randomTensor(GetParam(), {b, s, h, d}, 2), dims, strides, 0);
  command.out = {Type(GetParam(), {b, h, s, s})};
  expectSame(command, tolerance() * 4);
}

/// Values of 10 bits behind the leading one make exact products, others lose what is behind these bits.
TEST(CudaMatMulTf32, roundsItsOperands) {
  SHARDC_NEEDS_DEVICE();
  const int64_t sizes[][3] = {{128, 64, 96}, {256, 192, 320}, {37, 51, 13}};
  for (auto [m, n, k] : sizes)
    for (int64_t transposed : {0, 1}) {
      TestCommand command{"matmul", {{"tf32", int64_t(1)}, {"transpose_b", transposed}}};
      const Dims a{m, k}, b = transposed ? Dims{n, k} : Dims{k, n};
      command.out = {Type(DType::F32, {m, n})};
      auto narrow = [](Dims dims, unsigned seed) {
        return fromDoubles(DType::F32, dims, toDoubles(randomTensor(DType::BF16, dims, seed)));
      };
      command.in = {narrow(a, 1), narrow(b, 2)};
      expectSame(command, 1e-5 * std::sqrt(double(k)));
      command.in = {randomTensor(DType::F32, a, 1), randomTensor(DType::F32, b, 2)};
      expectSame(command, 1.5e-3 * std::sqrt(double(k)));
    }
}

/// Sums of 16-bit floats are rounded once, with a summand or without: hardly an element is another than the
/// exact sum's rounding.
TEST(CudaMatMulHalves, roundOnce) {
  SHARDC_NEEDS_DEVICE();
  const int64_t sizes[][3] = {{24, 24, 96}, {24, 24, 16}, {128, 64, 96}, {512, 256, 1024}, {256, 256, 8192}};
  for (DType dtype : {DType::BF16, DType::F16})
    for (auto [m, n, k] : sizes)
      for (int addend : {0, 1, 2}) // none, in place, apart
        for (int64_t transposed : {0, 1}) {
          TestCommand command{"matmul", {{"transpose_a", transposed}}};
          command.in = {randomTensor(dtype, transposed ? Dims{k, m} : Dims{m, k}, 1), randomTensor(dtype, {k, n}, 2)};
          command.out = {Type(dtype, {m, n})};
          if (addend)
            command.in.push_back(randomTensor(dtype, {m, n}, 3, std::sqrt(double(k)) / 3));
          const std::vector<double> exact = toDoubles(llvm::cantFail(runByHost(command))[0]);
          if (addend == 1)
            command.inPlace = {{0, 2}};
          auto results = runByDevice(command);
          ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
          const std::vector<double> got = toDoubles((*results)[0]),
                                    wanted = toDoubles(fromDoubles(dtype, {m, n}, exact));
          const double half = dtype == DType::BF16 ? 0x1p-8 : 0x1p-11; // of a unit of the last place, of 1
          int64_t others = 0, wrong = 0;
          for (size_t i = 0; i < got.size(); ++i) {
            others += got[i] != wanted[i];
            wrong += std::abs(got[i] - exact[i]) > 1.01 * half * std::abs(exact[i]) + slackOfSums(k);
          }
          const double share = double(others) / double(got.size());
          SCOPED_TRACE(toString(dtype).str() + " " + formatDims({m, n, k}) + ", addend " +
                       std::to_string(addend) + ", transposed " + std::to_string(transposed) + ": other " +
                       std::to_string(share));
          EXPECT_EQ(wrong, 0);
          EXPECT_LE(share, 0.02);
        }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaMatMul, testing::Values(DType::F64, DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return toString(info.param).str(); });

} // namespace
