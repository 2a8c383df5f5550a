// SPDX-License-Identifier: Apache-2.0
// The published known answers of Random123 (kat_vectors, philox4x32 10), and the dropout on top.
#include "ir/base/Philox.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace shardc;

TEST(Philox, knownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0, 0),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, kOnes, kOnes),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, dropoutKeepsTheRightShareAndScalesIt) {
  constexpr int kCount = 100000;
  for (double p : {0.0, 0.1, 0.5, 0.9}) {
    DropoutDraw draw(42, 3, 7, p);
    int kept = 0;
    for (int i = 0; i < kCount; ++i) {
      double factor = draw.factor(i);
      EXPECT_TRUE(factor == 0 || factor == 1 / (1 - p));
      kept += factor != 0;
    }
    // Five standard errors.
    EXPECT_NEAR(kept, kCount * (1 - p), 5 * std::sqrt(kCount * p * (1 - p)));
  }
}

TEST(Philox, dropoutDependsOnSeedStepIdAndElement) {
  auto mask = [](uint64_t seed, uint64_t step, uint64_t id, uint64_t first) {
    DropoutDraw draw(seed, step, id, 0.5);
    uint64_t bits = 0;
    for (unsigned i = 0; i < 64; ++i)
      bits |= uint64_t(draw.factor(first + i) != 0) << i;
    return bits;
  };
  uint64_t one = mask(1, 2, 3, 0);
  EXPECT_EQ(one, mask(1, 2, 3, 0));
  EXPECT_NE(one, mask(2, 2, 3, 0));
  EXPECT_NE(one, mask(uint64_t(1) << 32 | 1, 2, 3, 0));
  EXPECT_NE(one, mask(1, 3, 3, 0));
  EXPECT_NE(one, mask(1, 2, 4, 0));
  EXPECT_NE(one, mask(1, 2, 3, 64));
  EXPECT_NE(one, mask(1, 2, 3, uint64_t(1) << 34));
}

TEST(Philox, batchMajorValuesContinueFromCutToCut) {
  EXPECT_EQ(dropoutStart(true, 3, 100), 300u);
  EXPECT_EQ(dropoutStart(false, 3, 100), 0u);
}
