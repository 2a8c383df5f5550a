// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include <gtest/gtest.h>

namespace shardc {
namespace {

TEST(Tensor, CountsWhatAMemoryHolds) {
  const int64_t k20 = 1 << 20, k44 = int64_t(1) << 44;
  EXPECT_EQ(checkedNumElements({}), 1);
  EXPECT_EQ(checkedNumElements({2, 3, 4}), 24);
  EXPECT_EQ(checkedNumElements({k44}), k44);
  EXPECT_EQ(checkedNumElements({k20, k20, 16}), k44);
  EXPECT_EQ(checkedNumElements({k44 + 1}), std::nullopt);
  EXPECT_EQ(checkedNumElements({k20, k20, 17}), std::nullopt);
  EXPECT_EQ(checkedNumElements({INT64_MAX, INT64_MAX}), std::nullopt);
  EXPECT_EQ(checkedNumElements({int64_t(1) << 32, int64_t(1) << 32}), std::nullopt); // 0 modulo 2^64
  EXPECT_EQ(checkedNumElements({-1}), std::nullopt);
}

/// Of no elements, but with strides all the same: they do not overflow either.
TEST(Tensor, CountsNothing) {
  EXPECT_EQ(checkedNumElements({0}), 0);
  EXPECT_EQ(checkedNumElements({5, 0, 7}), 0);
  EXPECT_EQ(checkedNumElements({0, INT64_MAX}), std::nullopt);
  EXPECT_EQ(checkedNumElements({INT64_MAX, INT64_MAX, 0}), std::nullopt);
  EXPECT_EQ(checkedNumElements({0, -1}), std::nullopt);
}

} // namespace
} // namespace shardc
