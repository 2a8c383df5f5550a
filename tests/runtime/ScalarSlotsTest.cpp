// SPDX-License-Identifier: Apache-2.0
#include "runtime/ScalarSlots.h"
#include "ir/plan/Scalars.h"
#include <gtest/gtest.h>

using namespace shardc;

namespace {

TEST(ScalarSlots, HoldWhatAStepLearns) {
  double scalars[kNumScalars] = {};
  Hyperparameters numbers;
  numbers.weightDecay = 0.1;
  numbers.nesterov = true;
  numbers.momentum = 0.9;
  numbers.seed = 7;
  fillScalars(scalars, numbers, 3e-4, /*step=*/9, /*firstUpdate=*/false);
  fillShardIndex(scalars, /*microStep=*/2, /*ranks=*/4, /*rank=*/3);
  EXPECT_EQ(scalars[kLearningRate], 3e-4);
  // Python: 1 - 0.9 ** 10, 1 - 0.999 ** 10
  EXPECT_DOUBLE_EQ(scalars[kBiasCorrection1], 0.6513215599);
  EXPECT_DOUBLE_EQ(scalars[kBiasCorrection2], 0.009955119790251765);
  EXPECT_EQ(scalars[kBeta1], 0.9);
  EXPECT_EQ(scalars[kEpsilon], 1e-8);
  EXPECT_EQ(scalars[kWeightDecay], 0.1);
  EXPECT_EQ(scalars[kMomentum], 0.9);
  EXPECT_EQ(scalars[kNesterov], 1);
  EXPECT_EQ(scalars[kMaxGradNorm], 1);
  EXPECT_EQ(scalars[kDecayAll], 0);
  EXPECT_EQ(scalars[kSeed], 7);
  EXPECT_EQ(scalars[kStep], 9);
  EXPECT_EQ(scalars[kShardIndex], 11);
  EXPECT_EQ(scalars[kFirstUpdate], 0);
}

} // namespace
