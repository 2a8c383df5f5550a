// SPDX-License-Identifier: Apache-2.0
// Against examples of the ONNX specification, and results written out by hand.
#include "ir/base/Movement.h"
#include "ir/base/Tensor.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace shardc;

namespace {

std::vector<float> iota(int64_t n, float first = 0) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}
Indices of(const std::vector<int64_t> &values) {
  return {values.data(), DType::I64, int64_t(values.size())};
}
using Floats = std::vector<float>;

TEST(Movement, stridedCopyTransposesFlipsAndBroadcasts) {
  Floats in = iota(6), out(6);
  stridedCopy(out.data(), {2, 1}, in.data(), {1, 3}, {3, 2}, 4); // transpose of 2x3
  EXPECT_EQ(out, (Floats{0, 3, 1, 4, 2, 5}));
  stridedCopy(out.data(), {3, 1}, in.data() + 5, {-3, -1}, {2, 3}, 4);
  EXPECT_EQ(out, (Floats{5, 4, 3, 2, 1, 0}));
  stridedCopy(out.data(), {3, 1}, in.data(), {0, 1}, {2, 3}, 4);
  EXPECT_EQ(out, (Floats{0, 1, 2, 0, 1, 2}));
  stridedCopy(out.data(), {}, in.data() + 4, {}, {}, 4);
  EXPECT_EQ(out[0], 4);
}

TEST(Movement, stridedCopyTakesEveryElementSizeAndEmptyDims) {
  for (int64_t bytes : {1, 2, 4, 8}) {
    std::vector<char> in(4 * bytes), out(4 * bytes);
    std::iota(in.begin(), in.end(), 0);
    stridedCopy(out.data(), {2, 1}, in.data(), {1, 2}, {2, 2}, bytes);
    for (int64_t b = 0; b < bytes; ++b) {
      EXPECT_EQ(out[bytes + b], in[2 * bytes + b]);
      EXPECT_EQ(out[2 * bytes + b], in[bytes + b]);
    }
    stridedCopy(nullptr, {0, 1}, nullptr, {0, 1}, {3, 0}, bytes);
  }
}

TEST(Movement, concatAlongAnInnerAxis) {
  Floats a = iota(4), b = {10, 11}, out(6);
  concat(out.data(), {2, 3}, 1, {{a.data(), {2, 2}, {2, 1}}, {b.data(), {2, 1}, {1, 1}}}, 4);
  EXPECT_EQ(out, (Floats{0, 1, 10, 2, 3, 11}));
}

TEST(Movement, padSurroundsWithTheValue) {
  Floats in = iota(2, 1), out(8);
  float value = 9;
  pad(out.data(), {2, 4}, in.data(), {1, 2}, {2, 1}, {1, 1}, &value, 4);
  EXPECT_EQ(out, (Floats{9, 9, 9, 9, 9, 1, 2, 9}));
}

TEST(Movement, gatherTakesNegativeIndicesAndReportsBadOnes) {
  Floats data = iota(6), out(6);
  EXPECT_EQ(gather(out.data(), data.data(), AxisView({2, 3}, 1), of({-1, 0, 1}), 4), kAllInRange);
  EXPECT_EQ(out, (Floats{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(gather(out.data(), data.data(), AxisView({3, 2}, 0), of({2, 0}), 4), kAllInRange);
  EXPECT_EQ(Floats(out.begin(), out.begin() + 4), (Floats{4, 5, 0, 1}));
  EXPECT_EQ(gather(out.data(), data.data(), AxisView({3, 2}, 0), of({0, 3}), 4), 1);
  EXPECT_EQ(gather(out.data(), data.data(), AxisView({3, 2}, 0), of({-4}), 4), 0);
}

TEST(Movement, gatherGradAddsUpByIndex) {
  Floats dy = iota(6, 1), out(4);
  std::vector<int64_t> indices = {1, 1, -2};
  EXPECT_EQ(gatherGrad(out.data(), dy.data(), AxisView({2, 2}, 0), of(indices), DType::F32),
            kAllInRange);
  EXPECT_EQ(out, (Floats{5, 6, 4, 6}));
}

TEST(Movement, gatherElementsAsInOnnx) {
  Floats data = {1, 2, 3, 4}, out(4);
  EXPECT_EQ(gatherElements(out.data(), data.data(), {2, 2}, of({0, 0, 1, 0}), {2, 2}, 1, 4),
            kAllInRange);
  EXPECT_EQ(out, (Floats{1, 1, 4, 3}));
  Floats nine = iota(9, 1), six(6);
  EXPECT_EQ(
      gatherElements(six.data(), nine.data(), {3, 3}, of({-1, -2, 0, -2, 0, 0}), {2, 3}, 0, 4),
      kAllInRange);
  EXPECT_EQ(six, (Floats{7, 5, 3, 4, 2, 3}));
  EXPECT_EQ(gatherElements(out.data(), data.data(), {2, 2}, of({0, 2}), {1, 2}, 1, 4), 1);
}

TEST(Movement, scatterElementsAsInOnnx) {
  Floats y(9), updates = {1.0, 1.1f, 1.2f, 2.0, 2.1f, 2.2f};
  EXPECT_EQ(scatterElements(y.data(), {3, 3}, of({1, 0, 2, 0, 2, 1}), {2, 3}, updates.data(), 0,
                            Scatter::None, DType::F32),
            kAllInRange);
  EXPECT_EQ(y, (Floats{2.0, 1.1f, 0, 1.0, 0, 2.2f, 0, 2.1f, 1.2f}));
  Floats z = iota(5, 1), two = {1.1f, 2.1f};
  EXPECT_EQ(scatterElements(z.data(), {1, 5}, of({1, 1}), {1, 2}, two.data(), 1, Scatter::Add,
                            DType::F32),
            kAllInRange);
  EXPECT_FLOAT_EQ(z[1], 5.2f);
  z = iota(5, 1);
  scatterElements(z.data(), {1, 5}, of({1, -4}), {1, 2}, two.data(), 1, Scatter::Mul, DType::F32);
  EXPECT_FLOAT_EQ(z[1], 2 * 1.1f * 2.1f);
  scatterElements(z.data(), {1, 5}, of({0, 0}), {1, 2}, two.data(), 1, Scatter::Max, DType::F32);
  EXPECT_EQ(z[0], 2.1f);
  scatterElements(z.data(), {1, 5}, of({4, 4}), {1, 2}, two.data(), 1, Scatter::Min, DType::F32);
  EXPECT_EQ(z[4], 1.1f);
  EXPECT_EQ(
      scatterElements(z.data(), {1, 5}, of({5}), {1, 1}, two.data(), 1, Scatter::Add, DType::F32),
      0);
}

TEST(Movement, gatherNdAsInOnnx) {
  std::vector<int32_t> data = {0, 1, 2, 3}, out(2);
  EXPECT_EQ(gatherNd(out.data(), data.data(), {2, 2}, of({0, 0, 1, 1}), {2, 2}, 0, 4), kAllInRange);
  EXPECT_EQ(out, (std::vector<int32_t>{0, 3}));
  std::vector<int32_t> eight = {0, 1, 2, 3, 4, 5, 6, 7}, four(4);
  EXPECT_EQ(gatherNd(four.data(), eight.data(), {2, 2, 2}, of({1, 0}), {2, 1}, 1, 4), kAllInRange);
  EXPECT_EQ(four, (std::vector<int32_t>{2, 3, 4, 5}));
  EXPECT_EQ(gatherNd(out.data(), data.data(), {2, 2}, of({0, 0, 1, 2}), {2, 2}, 0, 4), 3);
}

TEST(Movement, scatterNdAsInOnnx) {
  Floats y = iota(8, 1), updates = {9, 10, 11, 12};
  EXPECT_EQ(
      scatterNd(y.data(), {8}, of({4, 3, 1, 7}), {4, 1}, updates.data(), Scatter::None, DType::F32),
      kAllInRange);
  EXPECT_EQ(y, (Floats{1, 11, 3, 10, 9, 6, 7, 12}));
  Floats z(4), rows = {1, 2, 3, 4};
  EXPECT_EQ(scatterNd(z.data(), {2, 2}, of({1, -1}), {2, 1}, rows.data(), Scatter::Add, DType::F32),
            kAllInRange);
  EXPECT_EQ(z, (Floats{0, 0, 4, 6}));
  EXPECT_EQ(scatterNd(z.data(), {2, 2}, of({2}), {1, 1}, rows.data(), Scatter::Add, DType::F32), 0);
}

TEST(Movement, cumSumAsInOnnx) {
  Floats in = iota(5, 1), out(5);
  AxisView view({5}, 0);
  cumSum(out.data(), in.data(), view, false, false, DType::F32);
  EXPECT_EQ(out, (Floats{1, 3, 6, 10, 15}));
  cumSum(out.data(), in.data(), view, true, false, DType::F32);
  EXPECT_EQ(out, (Floats{0, 1, 3, 6, 10}));
  cumSum(out.data(), in.data(), view, false, true, DType::F32);
  EXPECT_EQ(out, (Floats{15, 14, 12, 9, 5}));
  cumSum(out.data(), in.data(), view, true, true, DType::F32);
  EXPECT_EQ(out, (Floats{14, 12, 9, 5, 0}));
  Floats six = iota(6, 1), columns(6);
  cumSum(columns.data(), six.data(), AxisView({2, 3}, 0), false, false, DType::F32);
  EXPECT_EQ(columns, (Floats{1, 2, 3, 5, 7, 9}));
}

TEST(Movement, rangeCountsInItsType) {
  Floats out(3);
  range(out.data(), 3, 0.5, -0.25, DType::F32);
  EXPECT_EQ(out, (Floats{0.5, 0.25, 0}));
  std::vector<int64_t> ints(3);
  range(ints.data(), 3, 10, -3, DType::I64);
  EXPECT_EQ(ints, (std::vector<int64_t>{10, 7, 4}));
}

} // namespace
