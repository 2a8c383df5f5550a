// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Report.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include "ir/plan/Wire.h"
#include "tests/plan/PlanBytes.h"
#include "tests/plan/RankPlan.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

/// The small plan with names, costs and options as a large one has them.
plan::Plan named() {
  plan::Plan plan = smallPlan();
  plan.mutable_model()->set_path(std::string(150, 'd') + "/model.onnx");
  plan.mutable_model()->set_opset(18);
  plan.mutable_model()->set_producer("pytorch 2.6.0");
  for (const char *name : {"optimizer", "precision"}) {
    plan::Attr &option = *plan.add_options();
    option.set_name(name);
    option.set_s(name == std::string("optimizer") ? "adamw" : "fp32");
  }
  plan.add_strings(std::string(300, 'p'));
  command(plan, 0, 1).set_place(2);
  command(plan, 0, 1).set_flops(2e9);
  command(plan, 0, 1).set_predicted_us(1234);
  plan.set_predicted_ms(1.25);
  return plan;
}

/// A plan for several ranks whose bucket's collectives bear its name.
plan::Plan bucketPlan(unsigned ranks, unsigned stage, unsigned accumulate = 1) {
  plan::Plan plan = rankPlan(ranks, stage, accumulate);
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands())
      if (isCollective(c) && collectiveBytes(c) == 96)
        c.set_layer(1);
  return plan;
}

unsigned longestLine(StringRef text) {
  unsigned columns = 0;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    columns = std::max(columns, columnsOf(line));
  return columns;
}

/// While one lives, what is printed goes to a terminal of so many columns.
struct Terminal {
  explicit Terminal(unsigned columns) { fitTerminal(columns); }
  ~Terminal() { fitTerminal(0); }
};

TEST(Report, EveryLineFitsTheScreen) {
  plan::Plan plan = named();
  auto pages = [&] {
    std::string tables;
    raw_string_ostream os(tables);
    printEstimate(plan, uint64_t(1) << 40, os);
    printComparison(plan, {std::string(90, 'f')}, os);
    return printed([](auto &p, auto &os) { printScreen(p, os); }, plan) + printed(printDetails, plan) +
           printed(printPeak, plan) + tables;
  };
  EXPECT_GT(StringRef(pages()).count('\n'), 50u);
  EXPECT_EQ(longestLine(pages()), 100u);
  Terminal terminal(80);
  EXPECT_EQ(longestLine(pages()), 80u);
  EXPECT_LE(longestLine(printed(printCommands, plan)), 80u);
}

TEST(Report, ListsAreWholeWhereThereIsNoTerminal) {
  EXPECT_NE(printed(printCommands, named()).find(std::string(300, 'p')), std::string::npos);
}

TEST(Report, ScreenSaysTheNumbers) {
  std::string out = printed([](auto &p, auto &os) { printScreen(p, os); }, named());
  for (const char *part : {"opset 18, pytorch 2.6.0", "6 parameters in 1 tensors, 24 B; 1 trained",
                           "batch 2 a rank and micro-step, 1 micro-step an update",
                           "4 in train, 1 in update, 2 in eval", "optimizer=adamw precision=fp32",
                           "stage 0 over 1 rank: 1 buckets, 1 trained",
                           "2.25 KiB a rank (2304 bytes), lower bound 2.00 KiB, gap 12.50 %",
                           "predicted 1.25 ms a step: 2.00 GFLOP"})
    EXPECT_NE(out.find(part), std::string::npos) << part << "\nin\n" << out;
}

TEST(Report, PeakIsTheLargestLiveSum) {
  Peak peak = findPeak(smallPlan(), 0);
  EXPECT_EQ(peak.bytes, 2048u); // six persistent ones, y and its squares: 256 each
  EXPECT_EQ(peak.position, 1u);
  EXPECT_EQ(peak.buffers.size(), 8u);
  EXPECT_EQ(peak.buffers[0], uint32_t(kScalarsBuffer)); // 256 bytes, the others 24 or 4
}

TEST(Report, PeakGroupsWhatIsAlikeAndAdvises) {
  plan::Plan plan = named();
  plan.mutable_buffers(kY)->set_name("block.0.h");
  plan.mutable_buffers(kSquares)->set_name("block.11.h");
  std::string out = printed(printPeak, plan);
  EXPECT_NE(out.find("2.00 KiB live in 8 buffers, arena 2.25 KiB"), std::string::npos) << out;
  EXPECT_NE(out.find("at train command 1 (forward), fused"), std::string::npos) << out;
  EXPECT_NE(out.find("512 B  25.0 %        2    256 B  activation       block.*.h"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("--batch 1 (now 2): about 384 B less"), std::string::npos) << out;
  EXPECT_NE(out.find("--optimizer sgd"), std::string::npos) << out;
}

TEST(Report, ASumOfAWeightsGradientDoesNotShrinkWithTheBatch) {
  plan::Plan plan = named();
  command(plan, 0, 0).set_phase(1); // y is made in the backward pass now, and becomes the gradient
  std::string out = printed(printPeak, plan);
  EXPECT_NE(out.find("--batch 1 (now 2): about 256 B less"), std::string::npos) << out;

  // Squares too, if y is what they become in place.
  command(plan, 0, 1).set_phase(1);
  *command(plan, 0, 1).mutable_inputs(0) = smallRef(kSquares, {2, 3});
  *command(plan, 0, 1).mutable_outputs(0) = smallRef(kY, {2, 3});
  command(plan, 0, 1).add_in_place(1);
  out = printed(printPeak, plan);
  EXPECT_EQ(out.find("--batch"), std::string::npos) << out; // half of x is nothing
}

TEST(Report, JsonHasTheStableKeys) {
  Expected<json::Value> value = json::parse(printed(printJson, named()));
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  const json::Object &o = *value->getAsObject();
  EXPECT_EQ(o.getInteger("ranks"), 1);
  EXPECT_EQ(o.getInteger("zero"), 0);
  EXPECT_EQ(o.getInteger("batch"), 2);
  EXPECT_EQ(o.getInteger("peak_bytes"), 2304);
  EXPECT_EQ(o.getInteger("lower_bound_bytes"), 2048);
  EXPECT_EQ(o.getInteger("wire_bytes_per_step"), 0);
  EXPECT_EQ(o.getInteger("commands"), 7);
  EXPECT_EQ(o.getArray("spaces")->size(), 1u);
  EXPECT_EQ(o.getArray("collectives")->size(), 0u);
  const json::Object &peak = *o.getObject("peak");
  EXPECT_EQ(peak.getInteger("activation"), 512);
  EXPECT_EQ(peak.getInteger("optimizer_state"), 512);
  EXPECT_EQ(peak.getInteger("parameter"), 256);
  const json::Object &p = *(*o.getArray("parameters"))[0].getAsObject();
  EXPECT_EQ(p.getString("name"), "layer.0.weight");
  EXPECT_EQ((*p.getArray("shape"))[1].getAsInteger(), 3);
  EXPECT_EQ(p.getInteger("bucket"), 0);
  EXPECT_EQ(p.getInteger("offset"), 0);
  EXPECT_EQ(p.getArray("tie")->size(), 0u);
}

/// One bucket of 96 bytes, 4 ranks: a gather and a reduce-scatter send 72, an all-reduce 144.
TEST(Report, WireBytesAreTheTheory) {
  const struct {
    unsigned stage, accumulate;
    uint64_t bytes;
  } kCases[] = {
      {0, 1, 144},        {0, 4, 144},        // once an update
      {1, 1, 72 + 72},    {1, 4, 72 + 72},    // reduced, and gathered after the update
      {2, 1, 72 + 72},    {2, 4, 4 * 72 + 72}, // reduced in every micro-step
  };
  for (auto &[stage, accumulate, bytes] : kCases)
    EXPECT_EQ(wireBytesPerStep(bucketPlan(4, stage, accumulate)).buckets, bytes)
        << "stage " << stage << " accumulate " << accumulate;
  // Stage 3: as often as the plan gathers, in each of its micro-steps.
  plan::Plan plan = bucketPlan(4, 3, 4);
  uint64_t gathers = 0, reductions = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      if (StringRef(program.name()).starts_with("train") && c.layer()) {
        gathers += (program.name() == "train_middle" ? 2 : 1) * (c.kernel() == "all_gather_start");
        reductions += (program.name() == "train_middle" ? 2 : 1) * (c.kernel() == "reduce_scatter_start");
      }
  EXPECT_GE(gathers, 4u);
  EXPECT_EQ(reductions, 4u);
  EXPECT_EQ(wireBytesPerStep(plan).buckets, 72 * (gathers + reductions));
  EXPECT_EQ(wireBytesPerStep(bucketPlan(1, 0)).buckets, 0u);
}

TEST(Report, ScalarsAreListedApart) {
  plan::Plan plan = bucketPlan(4, 1);
  uint64_t scalars = 0, buckets = 0;
  for (const WireUse &use : wireUses(plan)) {
    (use.isScalar() ? scalars : buckets) += use.perStep() ? use.sent : 0;
    EXPECT_EQ(use.isScalar(), use.op == "all_reduce");
  }
  EXPECT_GT(scalars, 0u);
  EXPECT_EQ(wireBytesPerStep(plan).scalars, scalars);
  Expected<json::Value> value = json::parse(printed(printJson, plan));
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  const json::Object &o = *value->getAsObject();
  EXPECT_EQ(o.getInteger("wire_bytes_per_step"), int64_t(buckets));
  EXPECT_EQ(o.getInteger("scalar_wire_bytes_per_step"), int64_t(scalars));
  uint64_t listed = 0;
  for (const json::Value &use : *o.getArray("collectives")) {
    listed += uint64_t(*use.getAsObject()->getInteger("wire_bytes"));
    EXPECT_EQ(use.getAsObject()->getString("bucket"), "layer.0");
  }
  EXPECT_EQ(listed, buckets);
}

TEST(Report, AKindIsLargestWhenItIs) {
  // Gradients live from the backward pass into the update, the squares die before: by kind, not by moment.
  std::vector<KindBytes> kinds = memoryByKind(smallPlan());
  uint64_t atPeak = 0;
  for (const KindBytes &kind : kinds) {
    atPeak += kind.atPeak;
    EXPECT_GE(kind.largest, kind.atPeak);
    if (kind.kind == plan::GRADIENT) {
      EXPECT_EQ(kind.largest, 256u);
      EXPECT_EQ(kind.atPeak, 0u); // the peak is at the squares
    }
  }
  EXPECT_EQ(atPeak, findPeak(smallPlan(), 0).bytes);
}

TEST(Report, ComparesPlansInOneTable) {
  std::vector<plan::Plan> plans;
  std::vector<std::string> names;
  for (unsigned stage = 0; stage <= 3; ++stage) {
    plans.push_back(bucketPlan(4, stage));
    plans.back().set_predicted_ms(2);
    plans.back().set_exposed_ms(0.5);
    names.push_back("a/very/long/path/that/does/not/fit/into/the/table/stage" + std::to_string(stage) + ".plan");
  }
  std::string out;
  raw_string_ostream os(out);
  printComparison(plans, names, os);
  SmallVector<StringRef> lines;
  StringRef(out).split(lines, '\n');
  unsigned rows = 0;
  for (StringRef line : lines) {
    EXPECT_LE(columnsOf(line), screenColumns()) << line.str();
    rows += line.contains(".plan");
  }
  EXPECT_EQ(rows, 8u);
  EXPECT_NE(out.find("25.0 %"), std::string::npos) << out;
}

TEST(Report, AdvisesTheNextStage) {
  plan::Plan plan = bucketPlan(4, 0);
  bufferOf(plan, "m").set_bytes(4096);
  EXPECT_NE(printed(printPeak, plan).find("--zero 1 (now 0): about 3.00 KiB less"),
            std::string::npos)
      << printed(printPeak, plan);
  EXPECT_EQ(printed(printPeak, bucketPlan(4, 3)).find("--zero"), std::string::npos);
}

TEST(Report, NumbersHaveThreeDigits) {
  EXPECT_EQ(siText(0, "B"), "0.00 B");
  EXPECT_EQ(siText(18.06e12, "FLOP"), "18.1 TFLOP");
  EXPECT_EQ(siText(999.6, "B"), "1.00 kB");
  EXPECT_EQ(durationText(3.48e6), "3.48 s");
  EXPECT_EQ(durationText(158e6), "2.63 min");
  EXPECT_EQ(percentText(1, 8), "12.5 %");
}

TEST(Table, CutsOnlyFlexibleColumns) {
  Table table({{"number", Table::Right}, {"name", Table::Flexible}}, 0);
  table.add({"1", std::string(200, 'x')});
  table.add({"1000000", "short"});
  std::string out;
  raw_string_ostream os(out);
  table.print(os);
  EXPECT_EQ(out, " number  name\n      1  " + std::string(44, 'x') + ".." + std::string(45, 'x') +
                     "\n1000000  short\n");
}

TEST(Table, CountsCodePoints) {
  EXPECT_EQ(columnsOf("größe"), 5u);
  EXPECT_EQ(shortened("größenordnung", 8), "grö..ung");
}

} // namespace
} // namespace shardc
