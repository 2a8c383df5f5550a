// SPDX-License-Identifier: Apache-2.0
#include "passes/Timeline.h"
#include "ir/graph/Text.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

/// A flop, a byte on the link: 1 us each; nothing else takes time.
Machine unitMachine() {
  return {.flops = 1e6, .flops64 = 1e6, .flops16 = 1e6, .memoryBandwidth = 1e15, .linkBandwidth = 1e6};
}

std::unique_ptr<Graph> parse(StringRef body) {
  auto graph = parseGraph(("graph @g level=scheduled [\n" + body + "]\n").str(), "test");
  EXPECT_TRUE(bool(graph)) << toString(graph.takeError());
  return graph ? std::move(*graph) : nullptr;
}

Span spanOf(Graph &graph, const Timeline &timeline, StringRef value) {
  for (auto [op, span] : zip(orderOf(graph), timeline.spans))
    if (op == graph.findValue(value)->op())
      return span;
  ADD_FAILURE() << value.str();
  return {};
}

void expectSpan(Graph &graph, const Timeline &timeline, StringRef value, double start, double end) {
  Span span = spanOf(graph, timeline, value);
  EXPECT_NEAR(span.start, start, 1e-6) << value.str();
  EXPECT_NEAR(span.end, end, 1e-6) << value.str();
}

constexpr const char *kTwoGathers = R"(
  %s = input {name="s"} : f32[16]
  %x = input {name="x"} : f32[4,4]
  %g0 = all_gather_start %s, _ {ranks=2} : f32[32]
  %y0 = matmul %x, %x {transpose_a=0, transpose_b=0} : f32[4,4]
  %g1 = all_gather_start %s, _ {ranks=4} : f32[64]
  %b0 = collective_done %g0 : f32[32]
  %y1 = matmul %y0, %x {transpose_a=0, transpose_b=0} : f32[4,4]
  %b1 = collective_done %g1 : f32[64]
  %y2 = matmul %y1, %x {transpose_a=0, transpose_b=0} : f32[4,4]
  output "b0" %b0
  output "y2" %y2
)";

TEST(Timeline, LinkIsFirstComeFirstServedAndWaitsStall) {
  auto graph = parse(kTwoGathers);
  OpTimes times(*graph, unitMachine());
  Timeline timeline = simulate(orderOf(*graph), times);
  expectSpan(*graph, timeline, "g0", 0, 64);     // 1/2 of 128 bytes
  expectSpan(*graph, timeline, "y0", 0, 128);    // 2 * 4 * 4 * 4 flops
  expectSpan(*graph, timeline, "g1", 128, 320);  // 3/4 of 256 bytes
  expectSpan(*graph, timeline, "b0", 128, 128);  // there already
  expectSpan(*graph, timeline, "y1", 128, 256);
  expectSpan(*graph, timeline, "b1", 256, 320);  // 64 us too late
  expectSpan(*graph, timeline, "y2", 320, 448);
  EXPECT_NEAR(timeline.total, 448, 1e-6);
  EXPECT_NEAR(timeline.compute, 384, 1e-6);
  EXPECT_NEAR(timeline.exposed(), 64, 1e-6);
}

TEST(Timeline, ABusyLinkDelaysTheNext) {
  auto graph = parse(R"(
  %s = input {name="s"} : f32[32]
  %l = input {name="l"} : f32[]
  %g0 = all_gather_start %s, _ {ranks=2} : f32[64]
  %g1 = all_gather_start %s, _ {ranks=2} : f32[64]
  %b0 = collective_done %g0 : f32[64]
  %r = reduce_scatter_start %b0 {ranks=2} : f32[32]
  output "b0" %b0
)");
  OpTimes times(*graph, unitMachine());
  Timeline timeline = simulate(orderOf(*graph), times);
  expectSpan(*graph, timeline, "g1", 128, 256);
  expectSpan(*graph, timeline, "b0", 0, 128);
  expectSpan(*graph, timeline, "r", 256, 384);
  EXPECT_NEAR(timeline.total, 384, 1e-6); // the link ends last
  EXPECT_NEAR(timeline.exposed(), 384, 1e-6);
}

TEST(Timeline, ComputingIsSlowerBesideTheLink) {
  auto graph = parse(kTwoGathers);
  Machine machine = unitMachine();
  machine.overlapSlowdown = 1.25;
  OpTimes times(*graph, machine);
  Timeline timeline = simulate(orderOf(*graph), times);
  expectSpan(*graph, timeline, "g0", 0, 64);
  expectSpan(*graph, timeline, "y0", 0, 140.8);     // 51.2 of 128 beside g0, in 64
  expectSpan(*graph, timeline, "g1", 140.8, 332.8);
  expectSpan(*graph, timeline, "y1", 140.8, 300.8); // all of it
  expectSpan(*graph, timeline, "b1", 300.8, 332.8);
  expectSpan(*graph, timeline, "y2", 332.8, 460.8); // none of it
  EXPECT_NEAR(timeline.exposed(), 76.8, 1e-6);
}

TEST(Timeline, SaysWhatPrefetchHides) {
  auto graph = parse(kTwoGathers);
  Exposed exposed = exposedMs(*graph, unitMachine());
  EXPECT_NEAR(exposed.ms, 0.064, 1e-9);
  // Only g1 is read by nobody: it stays. g0 is an output, and read by nobody either.
  EXPECT_NEAR(exposed.withoutPrefetchMs, 0.064, 1e-9);
  auto used = parse(R"(
  %s = input {name="s"} : f32[8]
  %x = input {name="x"} : f32[4,4]
  %g = all_gather_start %s, _ {ranks=2} : f32[16]
  %y0 = matmul %x, %x {transpose_a=0, transpose_b=0} : f32[4,4]
  %b = collective_done %g : f32[16]
  %w = reshape %b {dims=[4,4]} : f32[4,4]
  %y1 = matmul %y0, %w {transpose_a=0, transpose_b=0} : f32[4,4]
  output "y1" %y1
)");
  exposed = exposedMs(*used, unitMachine());
  EXPECT_NEAR(exposed.ms, 0, 1e-9);
  EXPECT_NEAR(exposed.withoutPrefetchMs, 0.032, 1e-9);
  EXPECT_NEAR(exposed.totalMs, 0.256, 1e-9);
}

TEST(Timeline, PricesByOperandsWhereAnOpSaysNothing) {
  auto graph = parse(R"(
  %x = input {name="x"} : f32[8,4]
  %v = transpose %x {perm=[1,0]} : f32[4,8]
  %c = copy %v : f32[4,8]
  output "c" %c
)");
  EXPECT_EQ(costOf(*graph->findValue("c")->op()).bytes, 2 * 8 * 4 * 4);
  EXPECT_EQ(costOf(*graph->findValue("v")->op()).bytes, 0);
  EXPECT_EQ(costOf(*graph->findValue("x")->op()).bytes, 0);
}

} // namespace
} // namespace shardc
