// SPDX-License-Identifier: Apache-2.0
// What peak-order counts is what plans say; what it does lowers the peak of plans and changes nothing else.
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "passes/LimitedOrder.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/Timeline.h"
#include "tests/passes/SmallModel.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

template <typename Body> void eachCompilation(Body body) {
  for (Precision precision : {Precision::Fp32, Precision::Bf16})
    for (unsigned ranks : {1, 3})
      for (unsigned zero = 0; zero <= 3; ++zero)
        for (unsigned accumulate : {1, 3}) {
          CompileOptions options;
          options.precision = precision;
          options.ranks = ranks;
          options.zero = zero;
          options.accumulate = accumulate;
          options.target = zero % 2 ? "cuda" : "cpu"; // with workspaces, and without
          SCOPED_TRACE(toString(precision).str() + " ranks " + std::to_string(ranks) + " stage " +
                       std::to_string(zero) + " accumulate " + std::to_string(accumulate));
          auto graph = parseGraph(kSmallModel, "model");
          auto result = compile(std::move(*graph), {}, options);
          ASSERT_TRUE(bool(result)) << toString(result.takeError());
          body(*result, options);
        }
}

/// Of what does not persist, at a position.
uint64_t liveBytes(const plan::Plan &plan, uint64_t position) {
  uint64_t bytes = 0;
  for (const plan::Buffer &b : plan.buffers())
    if (!b.persistent() && b.first() <= position && position < b.last())
      bytes += alignTo(b.bytes(), kAlignment);
  return bytes;
}

TEST(LiveBytes, AreThoseOfThePlan) {
  unsigned compared = 0;
  eachCompilation([&](const Compilation &compiled, const CompileOptions &options) {
    uint64_t position = 0;
    for (const ProgramGraph &program : compiled.programs) {
      LiveBytes live(*program.graph, options);
      const emit::Sequence sequence = emit::buildSequence(*program.graph);
      for (auto [i, item] : enumerate(sequence.items)) {
        bool last = i + 1 == sequence.items.size() || sequence.items[i + 1].op != item.op;
        if (item.kind == emit::Item::Run) {
          EXPECT_EQ(live.next(*item.op).during, liveBytes(*compiled.plan, position))
              << program.name << ": " << item.op->result()->name().str();
          ++compared;
        }
        if (item.kind == emit::Item::Run || (item.kind == emit::Item::Copy && last))
          live.run(*item.op);
        ++position;
      }
    }
  });
  EXPECT_GT(compared, 2000u);
}

uint64_t peakOf(Graph &graph, const CompileOptions &options) {
  LiveBytes live(graph, options);
  return *max_element(liveProfile(orderOf(graph), live));
}

/// Every order that a limit leads to is one of the same ops, sound, and ends with nothing but what outlives
/// the program.
TEST(LimitedOrder, AnyLimitGivesASoundOrder) {
  eachCompilation([&](Compilation &compiled, const CompileOptions &options) {
    for (ProgramGraph &program : compiled.programs) {
      Graph &graph = *program.graph;
      if (!graph.numOps())
        continue;
      const Order given = orderOf(graph);
      LiveBytes live(graph, options);
      liveProfile(given, live);
      const uint64_t atEnd = live.now();
      LimitedOrder limited(graph, given, live);
      for (unsigned part = 0; part <= 8; ++part)
        for (bool collectives : {false, true}) {
          auto copy = graph.clone();
          DenseMap<const Op *, Op *> ofCopy;
          for (auto [a, b] : zip(graph.ops(), copy->ops()))
            ofCopy[&a] = &b;
          const uint64_t peak = limited.schedule(limited.givenPeak() * part / 8, collectives);
          Order order;
          for (Op *op : limited.made())
            order.push_back(ofCopy.lookup(op));
          applyOrder(*copy, order);
          std::string message = toString(verify(*copy));
          EXPECT_EQ(message, "");
          LiveBytes again(*copy, options);
          EXPECT_EQ(*max_element(liveProfile(orderOf(*copy), again)), peak);
          EXPECT_EQ(again.now(), atEnd);
        }
    }
  });
}

TEST(PeakOrder, NeverMoreBytesNorMoreTime) {
  eachCompilation([&](Compilation &compiled, const CompileOptions &asked) {
    CompileOptions options = asked;
    options.machine = "h200x2";
    for (ProgramGraph &program : compiled.programs) {
      if (!program.graph->numOps())
        continue;
      auto graph = program.graph->clone();
      OpTimes times(*graph, cantFail(loadMachine(options.machine)));
      const uint64_t peak = peakOf(*graph, options);
      const double time = simulate(orderOf(*graph), times).total;
      cantFail(peakOrder(*graph, options));
      EXPECT_LE(peakOf(*graph, options), peak);
      EXPECT_LE(simulate(orderOf(*graph), OpTimes(*graph, cantFail(loadMachine(options.machine)))).total,
                time * (1 + 1e-9));
    }
  });
}

} // namespace
} // namespace shardc
