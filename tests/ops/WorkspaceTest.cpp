// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Workspace.h"
#include "gtest/gtest.h"

using namespace shardc;

// deberta-v2-xlarge at batch 40: what its kernels were seen to allocate on a device when no plan gave it to them.
TEST(Workspace, RelativeAttentionGrad) {
  const RelativeParts parts = relativeParts(40, 24, 128, 128);
  EXPECT_EQ(parts.diagonals, 1);
  EXPECT_EQ(parts.parts, 5);
  EXPECT_GE(parts.parts * parts.each, 40);
  EXPECT_EQ(relativeScoresWorkspace(40, 24, 128, 128), 40 * 24 * 128 * 128 * 2);
  EXPECT_EQ(relativePositionsWorkspace(40, 24, 128, 128), 5 * 2 * 24 * 256 * 64 * 4);
  // Rows of scores are padded to 8; two tiles of queries meet one of keys in two diagonals.
  EXPECT_EQ(relativeScoresWorkspace(1, 2, 200, 5), (2 * 200 * 8 * 2 + 255) / 256 * 256);
  EXPECT_EQ(relativeParts(1, 2, 200, 5).diagonals, 2);
}

// t5-large at batch 64: 16 heads of 8 chunks fill the device.
TEST(Workspace, AttentionGrad) {
  EXPECT_EQ(attentionChunks(64, 16, 128, 132), 8);
  EXPECT_EQ(attentionChunks(9, 16, 128, 132), 5); // of two batches each: eight would leave some empty
  EXPECT_EQ(attentionChunks(1, 200, 128, 132), 1);
  EXPECT_EQ(attentionTileWorkspace(64, 16, 128, 128, true, true), 8 * 16 * 128 * 128 * 4);
  EXPECT_EQ(attentionTileWorkspace(64, 16, 128, 128, true, false), 64 * 16 * 128 * 128 * 2);
  EXPECT_EQ(attentionTileWorkspace(64, 16, 128, 128, false, false), 0);
  EXPECT_EQ(attentionTileWorkspace(2, 16, 200, 128, true, true), 2 * 16 * 200 * (4 + 128 * 2));
}
