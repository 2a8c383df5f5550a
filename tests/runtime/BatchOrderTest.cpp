// SPDX-License-Identifier: Apache-2.0
#include "runtime/BatchOrder.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace shardc;

namespace {

using Rows = std::vector<int64_t>;

// Step s reads rows [s*G, (s+1)*G); rank r and micro-step k take slice k*ranks + r.
TEST(BatchOrder, CutsStepsIntoSlices) {
  BatchOrder order(/*rows=*/26, /*batch=*/2, /*ranks=*/3, /*accumulate=*/2, /*shuffle=*/false,
                   /*seed=*/42);
  EXPECT_EQ(order.rowsPerStep(), 12);
  EXPECT_EQ(order.stepsPerEpoch(), 2); // rows 24 and 25 are left over
  EXPECT_EQ(order.rows(0, 0, 0).vec(), (Rows{0, 1}));
  EXPECT_EQ(order.rows(0, 2, 0).vec(), (Rows{4, 5}));
  EXPECT_EQ(order.rows(0, 0, 1).vec(), (Rows{6, 7}));
  EXPECT_EQ(order.rows(1, 1, 1).vec(), (Rows{20, 21}));
  EXPECT_EQ(order.rows(2, 0, 0).vec(), (Rows{0, 1})); // the next epoch
}

Rows epochOf(BatchOrder &order, int64_t epoch) {
  Rows rows;
  for (int64_t step = 0; step < order.stepsPerEpoch(); ++step)
    for (int64_t row : order.rows(epoch * order.stepsPerEpoch() + step, 0, 0))
      rows.push_back(row);
  return rows;
}

TEST(BatchOrder, ShufflesEachEpochAnew) {
  BatchOrder order(1000, 4, 1, 1, true, 42);
  Rows first = epochOf(order, 0), second = epochOf(order, 1);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 1000u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(first.begin(), first.end()), 999);
  auto fixedPoints = [](const Rows &a, const Rows &b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i)
      count += a[i] == b[i];
    return count;
  };
  // The number of fixed points of a random permutation is Poisson(1): 8 or more has a chance of
  // 1e-5.
  EXPECT_LT(fixedPoints(first, second), 8);
  EXPECT_EQ(epochOf(order, 0), first); // going back is allowed
  BatchOrder again(1000, 4, 1, 1, true, 42), other(1000, 4, 1, 1, true, 43);
  EXPECT_EQ(epochOf(again, 1), second);
  EXPECT_LT(fixedPoints(epochOf(other, 0), first), 8);
}

TEST(BatchOrder, DoesNotDependOnRanksAndBatch) {
  BatchOrder whole(64, 8, 1, 1, true, 7), cut(64, 2, 2, 2, true, 7);
  Rows pieces;
  for (int64_t micro = 0; micro < 2; ++micro)
    for (int64_t rank = 0; rank < 2; ++rank)
      for (int64_t row : cut.rows(3, rank, micro))
        pieces.push_back(row);
  EXPECT_EQ(whole.rows(3, 0, 0).vec(), pieces);
}

// Every row lands everywhere equally often: chi square of 8 x 8 counts, 49 degrees of
// freedom, 99.99 % below 97.
TEST(BatchOrder, IsUniform) {
  BatchOrder order(8, 8, 1, 1, true, 1);
  int counts[8][8] = {};
  constexpr int kEpochs = 8000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Rows rows = epochOf(order, epoch);
    for (int i = 0; i < 8; ++i)
      ++counts[i][rows[i]];
  }
  double chi = 0, want = kEpochs / 8.0;
  for (auto &row : counts)
    for (int count : row)
      chi += (count - want) * (count - want) / want;
  EXPECT_LT(chi, 97);
  EXPECT_GT(chi, 15);
}

// Worked out from the header's text in Python:
//   M = 2**64 - 1
//   def mix(x): x = x + 0x9e3779b97f4a7c15 & M; x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M
//               x = (x ^ x >> 27) * 0x94d049bb133111eb & M; return x ^ x >> 31
//   o = list(range(10)); key = mix(mix(42) + 3 & M)
//   for i in range(9, 0, -1): j = mix(key + i & M) * (i + 1) >> 64; o[i], o[j] = o[j], o[i]
TEST(BatchOrder, IsTheDocumentedOrder) {
  BatchOrder order(10, 10, 1, 1, true, 42);
  EXPECT_EQ(order.rows(3, 0, 0).vec(), (Rows{2, 8, 4, 7, 5, 6, 3, 0, 9, 1}));
}

} // namespace
