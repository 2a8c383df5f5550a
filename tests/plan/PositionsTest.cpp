// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Positions.h"
#include "tests/plan/RankPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

namespace shardc {
namespace {

TEST(Positions, RunThroughAllPrograms) {
  plan::Plan plan = smallPlan(); // 4 in train, 1 in update, 2 in eval
  Positions positions(plan);
  EXPECT_EQ(positions.size(), 7u);
  const int kPrograms[] = {0, 0, 0, 0, 1, 2, 2};
  for (uint64_t at = 0; at < 7; ++at)
    EXPECT_EQ(positions.programIndex(at), kPrograms[at]) << at;
  EXPECT_EQ(positions.start(2), 5u);
  EXPECT_EQ(&positions.command(4), &plan.programs(1).commands(0));
  EXPECT_EQ(&positions.command(6), &plan.programs(2).commands(1));
}

TEST(Positions, SkipEmptyPrograms) {
  plan::Plan plan = smallPlan();
  plan.mutable_programs(1)->clear_commands();
  Positions positions(plan);
  EXPECT_EQ(positions.size(), 6u);
  EXPECT_EQ(positions.programIndex(4), 2);
}

TEST(Positions, DescribeACommand) {
  plan::Plan plan = smallPlan();
  EXPECT_EQ(Positions(plan).describe(3), "train command 3 (backward), fused");
  plan.add_strings("a\nb");
  command(plan, 1, 0).set_place(2);
  EXPECT_EQ(Positions(plan).describe(4), "update command 4 (update), fused, a\\0Ab");
}

TEST(Positions, LivesAreThoseOfTheCommands) {
  std::vector<Life> lives = livesOf(smallPlan());
  // y = x * w; its squares; their sum; the gradient reads y and x; then the update, and evaluation from 5 on.
  EXPECT_EQ(lives[kY].producer, 0u);
  EXPECT_EQ(lives[kY].lastReader, 3u);
  EXPECT_EQ(lives[kY].reads, 2u);
  EXPECT_EQ(lives[kSquares].producer, 1u);
  EXPECT_EQ(lives[kSquares].lastReader, 2u);
  EXPECT_EQ(lives[kGradients].producer, 3u);
  EXPECT_EQ(lives[kGradients].lastReader, 4u);
  EXPECT_EQ(lives[kX].producer, Life::kNone); // the host's
  EXPECT_EQ(lives[kX].lastReader, 5u);
  EXPECT_EQ(lives[kParameters].producer, 4u);
  EXPECT_EQ(lives[kLoss].writes, 2u);
  EXPECT_EQ(lives[kLoss].lastReader, Life::kNone);
}

TEST(Positions, LivesAreFirstWritesAndLastReads) {
  for (const plan::Plan &plan : {twoStreamPlan(), regionPlan(), rankPlan(4, 3, 2), rankPlan(2, 1, 3)}) {
    Positions positions(plan);
    llvm::ArrayRef<const plan::Command *> commands = positions.commands();
    std::vector<Life> lives = livesOf(plan);
    for (int b = 0; b < plan.buffers_size(); ++b) {
      auto touches = [&](const auto &refs) {
        return llvm::any_of(refs, [&](const plan::Ref &ref) { return !ref.absent() && ref.buffer() == uint32_t(b); });
      };
      uint64_t producer = Life::kNone, reader = Life::kNone;
      for (size_t p = commands.size(); p-- > 0;) {
        if (touches(commands[p]->outputs()))
          producer = p;
        if (touches(commands[p]->inputs()) && reader == Life::kNone)
          reader = p;
      }
      EXPECT_EQ(lives[size_t(b)].producer, producer) << plan.buffers(b).name();
      EXPECT_EQ(lives[size_t(b)].lastReader, reader) << plan.buffers(b).name();
    }
  }
}

TEST(Positions, TouchesOfABuffer) {
  plan::Plan plan = smallPlan();
  *command(plan, 0, 2).mutable_workspace() = smallRef(kSquares, {4}, DType::U8);
  std::vector<Touch> squares = touchesOf(plan, kSquares);
  ASSERT_EQ(squares.size(), 2u);
  EXPECT_EQ(squares[0].position, 1u);
  EXPECT_TRUE(squares[0].writes && !squares[0].reads && !squares[0].isWorkspace);
  EXPECT_EQ(squares[1].position, 2u);
  EXPECT_TRUE(squares[1].reads && squares[1].isWorkspace);
  // A command that reads the same buffer twice touches it once, and reads it once.
  EXPECT_EQ(livesOf(plan)[kY].reads, 2u);
  EXPECT_EQ(touchesOf(plan, kParameters).size(), 3u);
}

} // namespace
} // namespace shardc
