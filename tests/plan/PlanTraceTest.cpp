// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/PlanTrace.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Predict.h"
#include "tests/plan/RankPlan.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>
#include <map>

using namespace llvm;

namespace shardc {
namespace {

plan::Command &addCommand(plan::Program &program, const char *kernel, unsigned stream, double us,
                          std::initializer_list<uint32_t> waits = {}, std::initializer_list<uint32_t> signals = {}) {
  plan::Command &c = *program.add_commands();
  c.set_kernel(kernel);
  c.set_stream(stream);
  c.set_predicted_us(us);
  c.set_communicator(stream);
  for (uint32_t event : waits)
    c.add_waits(event);
  for (uint32_t event : signals)
    c.add_signals(event);
  return c;
}

TEST(Predict, StreamsRunBesideEachOtherAndCollectivesShareTheLink) {
  plan::Program program;
  addCommand(program, "all_gather_start", 1, 10, {}, {0});
  addCommand(program, "fused", 0, 4, {}, {1});
  addCommand(program, "reduce_scatter_start", 2, 5, {1}, {2}); // ready at 4; the link is free at 10
  addCommand(program, "collective_done", 0, 0, {0});
  addCommand(program, "fused", 0, 1);
  addCommand(program, "collective_done", 0, 0, {2});
  std::vector<CommandSpan> spans = predictSpans(program);
  const double kStarts[] = {0, 0, 10, 10, 10, 15}, kEnds[] = {10, 4, 15, 10, 11, 15};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(spans[i].start, kStarts[i]) << i;
    EXPECT_EQ(spans[i].end, kEnds[i]) << i;
  }
  EXPECT_EQ(endOf(spans), 15);
  EXPECT_EQ(endOf({}), 0);
}

TEST(Predict, PositionsAreReachedInOrder) {
  plan::Plan plan;
  plan::Program &train = *plan.add_programs();
  addCommand(train, "fused", 0, 4);
  addCommand(train, "fused", 0, 3);
  addCommand(train, "all_gather_start", 1, 2); // begins at 0, but behind what began at 4
  plan.add_programs();
  addCommand(*plan.add_programs(), "fused", 0, 1);
  EXPECT_EQ(positionTimes(plan), (std::vector<double>{0, 4, 4, 7, 8}));
}

json::Array traceOf(const plan::Plan &plan) {
  std::string out;
  raw_string_ostream os(out);
  printTrace(plan, os);
  Expected<json::Value> value = json::parse(out);
  EXPECT_TRUE(bool(value)) << toString(value.takeError());
  return *value->getAsObject()->getArray("traceEvents");
}

/// Four ranks, stage 3, two micro-steps: three streams; each command takes as many microseconds as it has operands, plus one.
plan::Plan timedPlan() {
  plan::Plan plan = rankPlan(4, 3, 2);
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands())
      c.set_predicted_us(c.kernel() == "collective_done" ? 0 : 1 + c.inputs_size() + c.outputs_size());
  return plan;
}

TEST(PlanTrace, HasEveryCommandOnItsStreamOnce) {
  plan::Plan plan = timedPlan();
  json::Array events = traceOf(plan);
  std::vector<const plan::Command *> commands;
  double waited = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      commands.push_back(&c);
  size_t at = 0;
  std::map<int64_t, double> free; // of streams
  for (const json::Value &value : events) {
    const json::Object &e = *value.getAsObject();
    if (e.getString("ph") != "X" || e.getInteger("tid") == 1000)
      continue;
    ASSERT_LT(at, commands.size());
    const plan::Command &c = *commands[at++];
    double start = *e.getNumber("ts"), duration = *e.getNumber("dur");
    EXPECT_EQ(e.getInteger("tid"), int64_t(c.stream()));
    EXPECT_EQ(e.getObject("args")->getString("kernel"), c.kernel());
    EXPECT_GE(start, free[c.stream()] - 1e-9);
    free[c.stream()] = start + duration;
    if (c.kernel() == "collective_done")
      waited += duration;
    else
      EXPECT_NEAR(duration, c.predicted_us(), 1e-9);
  }
  EXPECT_EQ(at, commands.size());
  EXPECT_GT(waited, 0); // for gathers that nothing hides
}

TEST(PlanTrace, ArrowsGoFromSignalsToWaits) {
  plan::Plan plan = timedPlan();
  size_t waits = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      waits += c.waits_size();
  json::Array events = traceOf(plan);
  struct Arrow {
    double from = -1, to = -1;
    int64_t fromTrack = -1, toTrack = -1;
  };
  std::map<int64_t, Arrow> arrows;
  for (const json::Value &value : events) {
    const json::Object &e = *value.getAsObject();
    if (e.getString("ph") == "s") {
      arrows[*e.getInteger("id")].from = *e.getNumber("ts");
      arrows[*e.getInteger("id")].fromTrack = *e.getInteger("tid");
    } else if (e.getString("ph") == "f") {
      EXPECT_EQ(e.getString("bp"), "e");
      arrows[*e.getInteger("id")].to = *e.getNumber("ts");
      arrows[*e.getInteger("id")].toTrack = *e.getInteger("tid");
    }
  }
  EXPECT_GT(waits, 0u);
  EXPECT_EQ(arrows.size(), waits);
  for (auto &[id, arrow] : arrows) {
    EXPECT_GE(arrow.from, 0) << id;
    EXPECT_GE(arrow.to, 0) << id;
    EXPECT_NE(arrow.fromTrack, arrow.toTrack) << id; // events order streams
  }
}

TEST(PlanTrace, CountersReachThePeakAndEndWithWhatPersists) {
  for (const plan::Plan &plan : {timedPlan(), smallPlan(), twoStreamPlan()}) {
    uint64_t persistent = 0;
    for (const plan::Buffer &b : plan.buffers())
      persistent += b.persistent() ? alignedBytes(b) : 0;
    json::Array events = traceOf(plan);
    int64_t highest = 0, last = 0;
    double time = 0;
    std::map<std::string, int64_t> kinds;
    for (const json::Value &value : events) {
      const json::Object &e = *value.getAsObject();
      if (e.getString("ph") != "C")
        continue;
      EXPECT_GE(*e.getNumber("ts"), time);
      time = *e.getNumber("ts");
      int64_t bytes = *e.getObject("args")->getInteger("bytes");
      if (*e.getString("name") == "live") {
        int64_t sum = 0;
        for (auto &[kind, kindBytes] : kinds)
          sum += kindBytes;
        EXPECT_EQ(sum, bytes);
        highest = std::max(highest, last = bytes);
      } else {
        kinds[e.getString("name")->str()] = bytes;
      }
    }
    EXPECT_EQ(uint64_t(highest), findPeak(plan, 0).bytes);
    EXPECT_EQ(uint64_t(last), persistent);
  }
}

} // namespace
} // namespace shardc
