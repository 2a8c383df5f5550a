// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Text.h"
#include "tests/plan/RankPlan.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

std::string text(const plan::Plan &plan) {
  std::string out;
  llvm::raw_string_ostream os(out);
  printPlan(plan, os);
  return out;
}

void expectLine(const std::string &text, llvm::StringRef line) {
  EXPECT_NE(text.find(line.str() + "\n"), std::string::npos) << line.str() << "\nin\n" << text;
}

TEST(PlanPrinter, SaysAddressesLifetimesAndWaits) {
  std::string out = text(twoStreamPlan());
  expectLine(out, "space 0 device bytes=2304 lower_bound=2048");
  expectLine(out, "buffer %2.layer.0                       s0[512, 536) persistent parameter");
  expectLine(out, "buffer %7.y                             s0[1536, 1560) live[0, 4) activation");
  expectLine(out, "bucket \"layer.0\" f32[6] decay=[0, 6) parameters=%2.layer.0 "
                  "gradients=%3.layer.0.grad state=%4.layer.0.m state=%5.layer.0.v");
  expectLine(out,
             "    0 compute fused            %1.x:f32[2,3], %2.layer.0:f32[2,3] -> %7.y:f32[2,3] "
             "body=\"t0: f32 = x0 * x1;\" outputs=\"t0\" signal e0");
  expectLine(out,
             "    3 gather  fused            %7.y#1:f32[2,3], %1.x:f32[2,3] -> "
             "%3.layer.0.grad:f32[2,3] body=\"t0: f32 = 2 * x0 * x1;\" outputs=\"t0\" wait e0(by 0)");
}

/// The bucket's collectives say so.
plan::Plan layered(plan::Plan plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands())
      if (c.kernel() == "all_gather_start" || c.kernel() == "reduce_scatter_start")
        c.set_layer(1);
  return plan;
}

TEST(PlanPrinter, SaysRegionsAndMethod) {
  plan::Plan plan = regionPlan();
  plan.mutable_spaces(0)->set_method("by size");
  std::string out = text(plan);
  expectLine(out, "space 0 device bytes=2304 lower_bound=2048 method=\"by size\"");
  expectLine(out, "region s0[0, 1536) \"persistent\" lower_bound=1536");
  expectLine(out, "region s0[1536, 2304) \"step\" lower_bound=512");
}

TEST(PlanPrinter, SaysSlicesAndCommunicators) {
  std::string out = text(layered(rankPlan(4, 1)));
  EXPECT_NE(out.find("+rank*24"), std::string::npos) << out;
  SmallVector<StringRef> lines;
  StringRef(out).split(lines, '\n');
  bool gathers = false, waits = false;
  for (StringRef line : lines) {
    gathers |= line.contains(" gather  all_gather_start ") && line.contains(" communicator=1 ") &&
               line.ends_with(" layer=\"layer.0\"");
    waits |= line.contains(" compute collective_done   wait e") && line.contains("(by ");
  }
  EXPECT_TRUE(gathers) << out;
  EXPECT_TRUE(waits) << out;
}

TEST(PlanPrinter, EscapesWhatATerminalWouldActOn) {
  EXPECT_EQ(printable("a\x1b[2J\"\n"), "a\\1B[2J\\22\\0A");
  EXPECT_EQ(printable("über"), "über");
}

TEST(PlanText, Sizes) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1024), "1.00 KiB");
  EXPECT_EQ(bytesText(1536 << 20), "1.50 GiB");
  EXPECT_EQ(bytesText(1023 << 10), "1.00 MiB");
  EXPECT_EQ(bytesText(uint64_t(123) << 30), "123 GiB");
}

} // namespace
} // namespace shardc
