// SPDX-License-Identifier: Apache-2.0
// A sound plan passes; each kind of damage is refused, with the words that say where.
#include "ir/plan/Peak.h"
#include "tests/plan/Refused.h"
#include "tests/plan/SmallPlan.h"
#include "llvm/ADT/STLFunctionalExtras.h"

using namespace llvm;

namespace shardc {
namespace {

plan::Buffer &buffer(plan::Plan &plan, int i) { return *plan.mutable_buffers(i); }

TEST(Check, SoundPlansPass) {
  EXPECT_EQ(verdict(smallPlan()), "");
  EXPECT_EQ(verdict(twoStreamPlan()), "");
  EXPECT_EQ(verdict(regionPlan()), "");
}

TEST(Check, Aliases) {
  const Damage list[] = {
      {"output over an input, not declared",
       [](plan::Plan &p) { command(p, 1, 0).clear_in_place(); },
       "update: command 0 (fused): output 0 overlaps input 0"},
      {"declared, but elsewhere",
       [](plan::Plan &p) { command(p, 1, 0).mutable_inputs(0)->set_buffer(kM); },
       "output 0 does not lie over input 0, which it is said to"},
      {"declared, but another order of elements",
       [](plan::Plan &p) {
         plan::Ref &in = *command(p, 1, 0).mutable_inputs(0);
         in.set_offset(20);
         in.add_strides(-1);
       },
       "output 0 does not lie over input 0"},
      {"in_place of no input", [](plan::Plan &p) { command(p, 1, 0).set_in_place(0, 3); },
       "in_place: no such input: got 3"},
      {"a product into its own operand",
       [](plan::Plan &p) { command(p, 0, 1).mutable_outputs(0)->set_buffer(kY); },
       "train: command 1 (fused): output 0 overlaps input 0"},
      {"every row in one place",
       [](plan::Plan &p) {
         command(p, 0, 1).mutable_outputs(0)->add_strides(0);
         command(p, 0, 1).mutable_outputs(0)->add_strides(1);
       },
       "output 0: two elements share memory"},
      {"two outputs in one place",
       [](plan::Plan &p) { *command(p, 0, 1).add_outputs() = smallRef(kSquares, {2}); },
       "outputs 0 and 1 overlap"},
      {"workspace over an input",
       [](plan::Plan &p) { *command(p, 0, 1).mutable_workspace() = smallRef(kY, {8}, DType::U8); },
       "input 0 overlaps the workspace"},
  };
  expectRefused(smallPlan, list);
}

TEST(Check, Lifetimes) {
  const Damage list[] = {
      {"ends one command early", [](plan::Plan &p) { buffer(p, kY).set_last(3); },
       "train: command 3 (fused): uses buffer 7 (y) outside its lifetime: got position 3, wanted "
       "one "
       "in [0, 3)"},
      {"begins one command late", [](plan::Plan &p) { buffer(p, kSquares).set_first(2); },
       "train: command 1 (fused): uses buffer 8 (squares) outside its lifetime"},
      {"ends before it begins",
       [](plan::Plan &p) { buffer(p, kY).set_last(0), buffer(p, kY).set_first(2); },
       "buffer 7 (y): lifetime: got [2, 0)"},
      {"beyond the last command", [](plan::Plan &p) { buffer(p, kEvalY).set_last(8); },
       "lifetime: got [5, 8), wanted at most [0, 7)"},
      {"gradient dies before the update", [](plan::Plan &p) { buffer(p, kGradients).set_last(4); },
       "update: command 0 (fused): uses buffer 3 (layer.0.grad) outside its lifetime"},
      {"training memory kept through evaluation",
       [](plan::Plan &p) { buffer(p, kGradients).set_last(6); }, "crosses into eval at 5"},
      {"two live buffers in one place", [](plan::Plan &p) { buffer(p, kM).set_offset(1536); },
       "buffer 7 (y) overlaps buffer 4 (layer.0.m) in address and time"},
      {"a partial overlap",
       [](plan::Plan &p) {
         buffer(p, kSquares).set_offset(1792);
         buffer(p, kY).set_bytes(300);
       },
       "overlaps buffer 7 (y) in address and time"},
      {"over a parameter", [](plan::Plan &p) { buffer(p, kSquares).set_offset(512); },
       "overlaps buffer 2 (layer.0) in address and time"},
      {"evaluation over optimizer state", [](plan::Plan &p) { buffer(p, kEvalY).set_offset(768); },
       "overlaps buffer 4 (layer.0.m) in address and time"},
  };
  expectRefused(smallPlan, list);
}

/// The squares take the place of y, which nobody reads afterwards.
plan::Plan inPlacePlan() {
  plan::Plan plan = smallPlan();
  buffer(plan, kSquares).set_offset(1536);
  buffer(plan, kY).set_last(1);
  command(plan, 0, 1).add_in_place(1);
  command(plan, 0, 3).mutable_inputs(0)->set_buffer(kX);
  plan.mutable_spaces(0)->set_lower_bound(1792);
  countVersions(plan);
  return plan;
}

TEST(Check, InPlace) {
  EXPECT_EQ(verdict(inPlacePlan()), "");
  const Damage list[] = {
      {"read after it was overwritten",
       [](plan::Plan &p) { command(p, 0, 3).mutable_inputs(0)->set_buffer(kY); },
       "train: command 3 (fused): uses buffer 7 (y) outside its lifetime: got position 3, wanted "
       "one "
       "in [0, 1)"},
      {"not declared", [](plan::Plan &p) { command(p, 0, 1).clear_in_place(); },
       "train: command 1 (fused): output 0 overlaps input 0"},
      {"lives on under the other", [](plan::Plan &p) { buffer(p, kY).set_last(2); },
       "buffer 8 (squares) overlaps buffer 7 (y) in address and time"},
      {"begins before the other ends", [](plan::Plan &p) { buffer(p, kSquares).set_first(0); },
       "overlaps buffer"},
      {"overwriter dropped", [](plan::Plan &p) { command(p, 0, 1) = command(p, 0, 0); },
       "train: command 1 (fused): uses buffer 7 (y) outside its lifetime"},
      {"another place", [](plan::Plan &p) { buffer(p, kSquares).set_offset(1792); },
       "output 0 does not lie over input 0, which it is said to"},
  };
  expectRefused(inPlacePlan, list);
}

TEST(Check, Values) {
  const Damage list[] = {
      {"writer dropped", [](plan::Plan &p) { command(p, 0, 0).clear_outputs(); },
       "train: command 1 (fused): input 0: reads buffer 7 (y) before it is written"},
      {"half written", [](plan::Plan &p) { command(p, 0, 0).mutable_outputs(0)->set_dims(0, 1); },
       "train: command 1 (fused): input 0: reads buffer 7 (y) before it is written"},
      {"written with gaps",
       [](plan::Plan &p) {
         plan::Ref &out = *command(p, 0, 0).mutable_outputs(0);
         out.set_dims(1, 2);
         out.add_strides(3);
         out.add_strides(1);
       },
       "reads buffer 7 (y) before it is written"},
      {"reader before writer",
       [](plan::Plan &p) { p.mutable_programs(0)->mutable_commands()->SwapElements(1, 2); },
       "train: command 1 (reduce_sum): input 0: reads buffer 8 (squares) before it is written"},
      {"gradient of another step",
       [](plan::Plan &p) { p.mutable_programs(0)->mutable_commands()->RemoveLast(); }, ""},
      {"output not written",
       [](plan::Plan &p) { *command(p, 0, 2).mutable_outputs(0) = smallRef(kSquares, {}); }, ""},
      {"input overwritten",
       [](plan::Plan &p) {
         *command(p, 0, 0).mutable_outputs(0) = smallRef(kX, {2, 3});
       },
       ""},
      {"parameter changed outside the update",
       [](plan::Plan &p) { *command(p, 0, 2).mutable_outputs(0) = smallRef(kParameters, {}); },
       "train: command 2 (reduce_sum): writes buffer 2 (layer.0), which it may only read"},
      {"update of something else",
       [](plan::Plan &p) {
         command(p, 1, 0).clear_in_place();
         command(p, 1, 0).mutable_outputs(0)->set_buffer(kM);
       },
       "bucket layer.0: update: got 0 commands that update its parameters, wanted 1"},
      {"scalars overwritten",
       [](plan::Plan &p) { *command(p, 0, 2).mutable_outputs(0) = smallRef(kScalarsBuffer, {}); },
       "writes buffer 0 (scalars), which it may only read"},
      {"evaluation reads what only training writes",
       [](plan::Plan &p) {
         *command(p, 2, 1).mutable_inputs(0) = smallRef(kLoss, {1, 1});
       },
       ""},
  };
  for (const Damage &damage : list) {
    plan::Plan plan = smallPlan();
    damage.apply(plan);
    EXPECT_NE(verdict(plan), "") << damage.name;
  }
  expectRefused(smallPlan, list);
}

TEST(Check, RowsOfAStridedWriteCount) {
  plan::Plan plan = smallPlan();
  plan::Command &whole = command(plan, 0, 0);
  plan::Command half = whole;
  whole.mutable_outputs(0)->set_dims(1, 2); // columns 0 and 1, then column 2
  whole.mutable_outputs(0)->add_strides(3);
  whole.mutable_outputs(0)->add_strides(1);
  half.mutable_outputs(0)->set_offset(8);
  half.mutable_outputs(0)->set_dims(1, 1);
  half.mutable_outputs(0)->add_strides(3);
  half.mutable_outputs(0)->add_strides(1);
  *command(plan, 0, 1).mutable_inputs(0) = smallRef(kX, {2, 3});
  *plan.mutable_programs(0)->mutable_commands(1) = half;
  *command(plan, 0, 2).mutable_inputs(0) = smallRef(kY, {2, 3});
  // The spans of the two writes overlap, as versions count; squares go unused.
  command(plan, 0, 1).mutable_outputs(0)->set_version(1);
  command(plan, 0, 2).mutable_inputs(0)->set_version(2);
  command(plan, 0, 3).mutable_inputs(0)->set_version(2);
  plan.mutable_buffers(kSquares)->set_last(1);
  plan.mutable_spaces(0)->set_lower_bound(findPeak(plan, 0).bytes);
  EXPECT_EQ(verdict(plan), "");
}

TEST(Check, Versions) {
  const Damage list[] = {
      {"another content meant",
       [](plan::Plan &p) { command(p, 0, 2).mutable_inputs(0)->set_version(2); },
       "train: command 2 (reduce_sum): input 0: means buffer 8 (squares) after 2 commands have "
       "written it, but 1 have: something was left out, doubled or moved"},
      {"an update after no gradient",
       [](plan::Plan &p) { command(p, 1, 0).mutable_inputs(1)->set_version(0); },
       "update: command 0 (fused): input 1: means buffer 3 (layer.0.grad) after 0 commands"},
      {"a result counted from itself on",
       [](plan::Plan &p) { command(p, 0, 0).mutable_outputs(0)->set_version(1); },
       "train: command 0 (fused): output 0: means buffer 7 (y) after 1 commands"},
      {"an output of the plan",
       [](plan::Plan &p) { p.mutable_outputs(1)->mutable_ref()->set_version(2); },
       "output loss_sum: means buffer 6 (loss_sum) after 2 commands have written it, but 1 have"},
      {"done twice", [](plan::Plan &p) { command(p, 0, 2) = command(p, 0, 1); }, ""},
  };
  expectRefused(smallPlan, list);
}

TEST(Check, Streams) {
  const Damage list[] = {
      {"a wait dropped", [](plan::Plan &p) { command(p, 0, 3).clear_waits(); },
       "train: command 3 (fused): reads buffer 7 (y) without waiting for train: command 0 (fused)"},
      {"a signal dropped", [](plan::Plan &p) { command(p, 0, 0).clear_signals(); },
       "waits for event 0, which nothing before it signals"},
      {"a signal too many", [](plan::Plan &p) { command(p, 0, 1).add_signals(0); },
       "signals event 0, which is signalled already"},
      {"waits for itself",
       [](plan::Plan &p) {
         command(p, 0, 0).clear_signals();
         command(p, 0, 3).add_signals(0);
       },
       "waits for event 0, which nothing before it signals"},
      {"reuse that only the list orders",
       [](plan::Plan &p) {
         // The squares die before the gradient begins, but nobody tells stream 1.
         buffer(p, kGradients).set_offset(1792);
         p.mutable_spaces(0)->set_bytes(2048);
       },
       "train: command 3 (fused): uses buffer 3 (layer.0.grad) without waiting for train: command "
       "1 "
       "(fused), which uses buffer 8 (squares) at the same address"},
      {"moved to another stream", [](plan::Plan &p) { command(p, 0, 2).set_stream(2); },
       "train: command 2 (reduce_sum): reads buffer 8 (squares) without waiting for"},
  };
  expectRefused(twoStreamPlan, list);
}

TEST(Check, ReuseAcrossStreamsIsSoundOnceItWaits) {
  plan::Plan plan = twoStreamPlan();
  buffer(plan, kGradients).set_offset(1792);
  plan.mutable_spaces(0)->set_bytes(2048);
  plan.set_events(2);
  command(plan, 0, 2).add_signals(1);
  command(plan, 0, 3).add_waits(1);
  EXPECT_EQ(verdict(plan), "");
}

} // namespace
} // namespace shardc
