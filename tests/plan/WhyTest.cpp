// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Table.h"
#include "tests/plan/RankPlan.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string why(const plan::Plan &plan, StringRef name) {
  std::string out;
  raw_string_ostream os(out);
  if (Error error = printWhy(plan, name, os))
    return "error: " + toString(std::move(error));
  SmallVector<StringRef> lines;
  StringRef(out).split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_LE(columnsOf(line), screenColumns()) << line.str();
  return out;
}

void expectParts(const std::string &out, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(out.find(part), std::string::npos) << part << "\nin\n" << out;
}

TEST(Why, TellsTheLifeOfABuffer) {
  std::string out = why(smallPlan(), "squares");
  expectParts(out, {"buffer 8: squares", "activation, 24 B", "space 0 (device), bytes [1792, 1816)",
                    "lives there: 12.5 % of 2.00 KiB", "positions [1, 3) of 7", "from: train command 1 (forward), fused",
                    "until: train command 2 (forward), reduce_sum reads it last", "what touches it: 2 commands"});
  EXPECT_EQ(why(smallPlan(), "8"), out);
  EXPECT_EQ(why(smallPlan(), "%8"), out);
  EXPECT_EQ(why(smallPlan(), "%8.squares"), out);
}

TEST(Why, TellsWhatIsBeforeAndAfterItInItsPlace) {
  std::string first = why(smallPlan(), "7"), second = why(smallPlan(), "9"); // y in training, and in evaluation
  expectParts(first, {"after it there, from 5: 9 (y)"});
  EXPECT_EQ(first.find("before it there"), std::string::npos) << first;
  expectParts(second, {"before it there, until 4: 7 (y)", "does not live at the peak"});
}

TEST(Why, TellsOfWhatPersistsAndOfOutputs) {
  expectParts(why(smallPlan(), "loss_sum"), {"always: it lives over all steps", "it holds the output loss_sum"});
  expectParts(why(smallPlan(), "x"), {"written by the host only"});
}

TEST(Why, NamesTheRegion) {
  plan::Plan plan = regionPlan();
  const plan::Region &last = *plan.spaces(0).regions().rbegin();
  expectParts(why(plan, "squares"), {("space 0 (device), region " + last.name() + ", bytes [1792, 1816)").c_str()});
}

TEST(Why, SaysWhatIsWrittenOverIt) {
  plan::Plan plan = smallPlan();
  plan.mutable_buffers(kSquares)->set_last(2); // as if the sum were written over them
  expectParts(why(plan, "squares"), {"then train command 2 (forward), reduce_sum writes its result over it"});
}

TEST(Why, ListsBuffersOfOneName) {
  expectParts(why(smallPlan(), "y"), {"2 buffers are called so; --why NUMBER tells of one", "[0, 4)", "[5, 7)"});
}

TEST(Why, ListsWhatTablesNameTogetherAndWhatALayerHas) {
  plan::Plan plan = smallPlan();
  plan.mutable_buffers(kY)->set_name("m.block.0.h");
  plan.mutable_buffers(kSquares)->set_name("m.block.11.h");
  std::string alike = why(plan, "m.block.*.h");
  expectParts(alike, {"2 buffers are alike", "m.block.0.h", "m.block.11.h"});
  plan.add_strings("block.0");
  plan.mutable_buffers(kY)->set_layer(plan.strings_size() - 1);
  plan.mutable_buffers(kSquares)->set_layer(plan.strings_size() - 1);
  expectParts(why(plan, "block.0"), {"2 buffers are of this layer", "block.0.h", "block.0: m.block.11.h"});
  plan.mutable_buffers(kSquares)->set_name("m.block.0.g");
  expectParts(why(plan, "block.*.g"), {"buffer 8: block.0.g"}); // one is told of
}

TEST(Why, ShortensTheListOfAWorkspace) {
  plan::Plan plan = smallPlan();
  for (int i = 0; i < 100; ++i)
    *plan.mutable_programs(0)->add_commands() = plan.programs(0).commands(1);
  expectParts(why(plan, "squares"), {"what touches it: 102 commands", "62 more"});
}

TEST(Why, FollowsAParameterIntoItsBucket) {
  plan::Plan plan = rankPlan(4, 3);
  plan.mutable_parameters(0)->add_ties("tied.weight");
  std::string out = why(plan, "tied.weight");
  // Elements 0 to 5 of 24: all in slice 0, of 6 elements.
  expectParts(out, {"parameter layer.0.weight: f32[2,3], trained", "tied.weight", "elements [0, 6) of 24",
                    "in the slice of rank 0", "what holds its bucket", "optimizer_state"});
  plan.mutable_parameters(0)->set_offset(3);
  expectParts(why(plan, "layer.0.weight"), {"in the slices of ranks 0 to 1"});
}

TEST(Why, RefusesWhatIsNotThere) {
  expectParts(why(smallPlan(), "10"), {"error: --why: no such buffer: got 10, wanted a number below 10"});
  expectParts(why(smallPlan(), "square"), {"error: --why: nothing is called so: got square"});
  expectParts(why(smallPlan(), ""), {"error: "});
  expectParts(why(smallPlan(), "-1"), {"error: "});
  expectParts(why(smallPlan(), "%"), {"error: "});
}

TEST(Why, TellsOfEveryBuffer) {
  for (unsigned stage = 0; stage <= 3; ++stage) {
    plan::Plan plan = rankPlan(4, stage, 2);
    for (int b = 0; b < plan.buffers_size(); ++b)
      EXPECT_NE(why(plan, std::to_string(b)).find("buffer " + std::to_string(b)), std::string::npos);
  }
}

} // namespace
} // namespace shardc
