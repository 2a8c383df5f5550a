// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Rounding.h"
#include "passes/memory/CheckPacking.h"
#include "passes/memory/Placement.h"
#include <algorithm>
#include <gmock/gmock.h>
#include <random>
#include <set>

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::Field;
using Items = std::vector<PackItem>;

constexpr uint64_t kMiB = 1 << 20;

TEST(Rounding, TakesTheLargestUnitThatChangesLittle) {
  const Items items = {{31 * kMiB + 4096, 0, 4}, {3 * kMiB, 1, 3}, {768, 2, 3}, {7 * kMiB - 256, 4, 5}};
  const RoundedItems rounded = roundSizes(items, 256, 4096 + 768); // more than a MiB would change 3 MiB too
  EXPECT_EQ(rounded.unit, kMiB);
  EXPECT_THAT(rounded.original, ElementsAre(0, 1, 3));
  EXPECT_THAT(rounded.items, ElementsAre(Field(&PackItem::bytes, 31), Field(&PackItem::bytes, 3), Field(&PackItem::bytes, 7)));
  EXPECT_EQ(rounded.items[1].first, 1u);
  EXPECT_EQ(rounded.items[1].last, 3u);
  EXPECT_EQ(roundSizes(items, 256, 4096 + 767).unit, 4096u);
  EXPECT_EQ(roundSizes(items, 256, 767).unit, 1024u); // which leaves nothing out
  EXPECT_EQ(roundSizes(items, 256, 255).unit, 0u);
}

/// Sizes near a few MiB.
Items nearlyWhole(unsigned seed) {
  std::mt19937 random(seed);
  Items items;
  for (unsigned i = 0; i < 60; ++i) {
    const uint64_t first = random() % 40;
    items.push_back({random() % 9 * kMiB + (1 + random() % 64) * 256, first, first + 1 + random() % 12});
  }
  return items;
}

TEST(Rounding, NothingLiesHigherThanUponWhatItLayAbove) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Items items = nearlyWhole(seed);
    const RoundedItems rounded = roundSizes(items, 256, kMiB);
    ASSERT_EQ(rounded.unit, kMiB);
    ASSERT_LT(rounded.items.size(), items.size());
    const PackResult packed = pack(rounded.items, 1, {.slack = 0, .work = 1 << 22});
    const std::vector<uint32_t> order = orderOf(rounded, packed.offsets, items);
    ASSERT_EQ(std::set(order.begin(), order.end()).size(), items.size());
    Placement placement(items);
    ASSERT_TRUE(placement.putAll(order, Fit::Lowest, UINT64_MAX, UINT64_MAX / 2));
    std::vector<uint64_t> end(items.size());
    for (size_t k = 0; k < rounded.items.size(); ++k) {
      const PackItem &item = items[order[k]];
      uint64_t upon = 0;
      for (size_t l = 0; l < k; ++l)
        if (const PackItem &below = items[order[l]]; below.first < item.last && item.first < below.last)
          upon = std::max(upon, end[order[l]]);
      end[order[k]] = upon + item.bytes;
      ASSERT_LE(placement.offsets()[order[k]], upon);
    }
  }
}

TEST(Rounding, WhatFitsButForALittleIsPacked) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Items items = nearlyWhole(seed);
    const PackResult result = pack(items, 256, {.work = 1 << 26});
    EXPECT_EQ(llvm::toString(checkPacking(items, 256, result)), "");
    EXPECT_LE(result.height, result.lowerBound + kMiB / 4) << result.method;
  }
}

} // namespace
} // namespace shardc
