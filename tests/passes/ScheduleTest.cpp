// SPDX-License-Identifier: Apache-2.0
// gather-prefetch and reduce-early on random programs: what must hold is computed again here, from the list alone.
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/Timeline.h"
#include "tests/passes/SmallModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <ctime>
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

/// Layers of one to three products that read a gathered bucket, forward and backward; a gradient for each, all reduced at the end.
std::string randomProgram(unsigned seed, int layers, bool inPlace) {
  std::mt19937 random(seed);
  auto upTo = [&](int n) { return int(random() % unsigned(n)); };
  std::string text = "graph @g level=scheduled [\n  %x = input {name=\"x\"} : f32[4,4]\n", last = "x";
  raw_string_ostream os(text);
  std::vector<int> sizes;
  for (int i = 0; i < layers; ++i)
    sizes.push_back(16 * (1 + upTo(6)));
  int gather = 0, product = 0;
  auto makeLayer = [&](int layer, const char *phase) {
    int size = sizes[layer], g = gather++;
    if (upTo(2)) // sources may stand anywhere
      os << formatv("  %s{0} = input {{name=\"s{0}\"} : f32[{1}] {2}\n", g, size / 2, phase);
    else {
      std::string source = formatv("  %s{0} = input {{name=\"s{0}\"} : f32[{1}]\n", g, size / 2);
      size_t at = text.find('\n') + 1;
      os.flush();
      text.insert(at, source);
    }
    os << formatv("  %g{0} = all_gather_start %s{0}, _ {{ranks=2} : f32[{1}] {2}\n", g, size, phase);
    os << formatv("  %b{0} = collective_done %g{0} : f32[{1}] {2}\n", g, size, phase);
    os << formatv("  %c{0} = slice %b{0} {{starts=[0], sizes=[16], steps=[1]} : f32[16] {1}\n", g, phase);
    os << formatv("  %w{0} = reshape %c{0} {{dims=[4,4]} : f32[4,4] {1}\n", g, phase);
    for (int k = 0, n = 1 + upTo(3); k < n; ++k) {
      bool far = k > 0 && g > 0 && upTo(3) == 0; // an earlier bucket is read once more
      os << formatv("  %y{0} = matmul %{1}, %w{2} {{transpose_a=0, transpose_b=0} : f32[4,4] {3}\n", product, last,
                    far ? g - 1 : g, phase);
      last = "y" + itostr(product++);
    }
  };
  for (int i = 0; i < layers; ++i)
    makeLayer(i, "");
  std::string end;
  raw_string_ostream tail(end);
  for (int i = layers; i-- > 0;) {
    makeLayer(i, "backward");
    os << formatv("  %d{0} = matmul %{1}, %x {{transpose_a=0, transpose_b=0} : f32[4,4] backward\n", i, last);
    tail << formatv("  %k{0} = pack _, %d{0} {{offsets=[0], elements={1}} : f32[{1}] backward\n", i, sizes[i]);
    tail << formatv("  %r{0} = reduce_scatter_start %k{0} {{ranks=2, in_place={2}} : f32[{1}] backward\n", i,
                    sizes[i] / 2, int(inPlace));
    tail << formatv("  %t{0} = collective_done %r{0} : f32[{1}] backward\n", i, sizes[i] / 2);
  }
  os << tail.str();
  for (int i = 0; i < layers; ++i)
    os << formatv("  output \"t{0}\" %t{0}\n", i);
  os << "  output \"y\" %" << last << "\n]\n";
  return os.str();
}

std::unique_ptr<Graph> parse(StringRef text) {
  auto graph = parseGraph(text, "random");
  EXPECT_TRUE(bool(graph)) << toString(graph.takeError()) << text.str();
  return graph ? std::move(*graph) : nullptr;
}

struct Position {
  DenseMap<const Op *, size_t> of;
  explicit Position(Graph &graph) {
    for (Op &op : graph.ops())
      of[&op] = of.size();
  }
};

/// The largest sum of gathered buckets at any op, from start to last use.
uint64_t residentBytes(Graph &graph) {
  Position position(graph);
  std::vector<int64_t> change(graph.numOps() + 1, 0);
  for (Op &op : graph.ops()) {
    if (!op.is(kAllGatherStart))
      continue;
    size_t last = position.of[&op];
    SmallVector<Value *> work{op.result()};
    while (!work.empty()) {
      Value *value = work.pop_back_val();
      for (Use use : value->uses()) {
        last = std::max(last, position.of[use.op]);
        if (use.op->def().view)
          work.push_back(use.op->result());
      }
    }
    change[position.of[&op]] += op.result()->type().numBytes();
    change[last + 1] -= op.result()->type().numBytes();
  }
  int64_t now = 0, most = 0;
  for (int64_t c : change)
    most = std::max(most, now += c);
  return uint64_t(most);
}

/// The largest number of started and not awaited reductions.
unsigned inFlight(Graph &graph) {
  unsigned now = 0, most = 0;
  for (Op &op : graph.ops()) {
    now += op.is(kReduceScatterStart);
    now -= op.is(kCollectiveDone) && op.operand(0)->op()->is(kReduceScatterStart);
    most = std::max(most, now);
  }
  return most;
}

double total(Graph &graph, const CompileOptions &options) {
  Machine machine = cantFail(loadMachine(options.machine));
  return simulate(orderOf(graph), OpTimes(graph, machine)).total;
}

void expectOk(Error error, StringRef text) {
  std::string message = toString(std::move(error));
  EXPECT_EQ(message, "") << text.str();
}

std::string printed(Graph &graph) {
  std::string text;
  raw_string_ostream os(text);
  printGraph(graph, os);
  return text;
}

class Schedule : public testing::TestWithParam<const char *> {};

TEST_P(Schedule, KeepsOrderLimitAndOps) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    bool inPlace = seed % 3 == 0;
    std::string text = randomProgram(seed, 2 + int(seed % 9), inPlace);
    auto graph = parse(text), again = parse(text);
    CompileOptions options;
    options.machine = GetParam();
    if (seed % 2)
      options.prefetchLimit = 64 + 64 * (seed % 23);
    uint64_t needed = residentBytes(*graph), largestPair = 0, before = 0;
    double late = total(*graph, options);
    size_t count = graph->numOps();
    for (Op &op : graph->ops())
      if (op.is(kAllGatherStart)) {
        uint64_t bytes = uint64_t(op.result()->type().numBytes());
        largestPair = std::max(largestPair, before + bytes);
        before = bytes;
      }

    expectOk(gatherPrefetch(*graph, options), text);
    expectOk(verify(*graph), text);
    // What is needed at one time anyway may be more than the limit.
    EXPECT_LE(residentBytes(*graph), std::max(needed, options.prefetchLimit.value_or(largestPair))) << text;
    double prefetched = total(*graph, options);
    EXPECT_LE(prefetched, late * (1 + 1e-9)) << text;

    expectOk(reduceEarly(*graph, options), text);
    expectOk(verify(*graph), text);
    EXPECT_EQ(graph->numOps(), count);
    EXPECT_LE(inFlight(*graph), inPlace ? 9u : 2u) << text;

    // One order of gathers: that of their waits.
    std::vector<const Op *> starts, waits;
    for (Op &op : graph->ops()) {
      if (op.is(kAllGatherStart))
        starts.push_back(&op);
      if (op.is(kCollectiveDone) && op.operand(0)->op()->is(kAllGatherStart))
        waits.push_back(op.operand(0)->op());
    }
    EXPECT_EQ(starts, waits) << text;

    expectOk(gatherPrefetch(*again, options), text);
    expectOk(reduceEarly(*again, options), text);
    EXPECT_EQ(printed(*graph), printed(*again));
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, Schedule, testing::Values("tests/passes/unit-machine.json", "tests/passes/slow-link.json", "h200x2"));

/// Over all non-decreasing places of the starts that keep the limit, none gives a shorter program.
TEST(ScheduleOfPrograms, PrefetchIsOptimalForItsOrder) {
  CompileOptions options;
  options.machine = "tests/passes/slow-link.json";
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::string text = randomProgram(seed, 2, true);
    auto graph = parse(text);
    options.prefetchLimit = residentBytes(*graph) + 64 * seed;
    OpTimes times(*graph, cantFail(loadMachine(options.machine)));
    Order list, starts;
    for (Op &op : graph->ops())
      (op.is(kAllGatherStart) ? starts : list).push_back(&op);
    double best = 1e30;
    std::vector<size_t> places(starts.size());
    auto tryAll = [&](auto &&self, size_t i, size_t least) -> void {
      if (i == starts.size()) {
        OrderBuilder out(graph->numOps());
        for (size_t p = 0, next = 0; p < list.size(); ++p) {
          for (; next < starts.size() && places[next] == p; ++next)
            out.add(starts[next]);
          out.add(list[p]);
        }
        applyOrder(*graph, out.take());
        if (residentBytes(*graph) <= *options.prefetchLimit)
          best = std::min(best, simulate(reductionsEarly(orderOf(*graph), times), times).total);
        return;
      }
      for (size_t p = least; p < list.size(); ++p) {
        bool done = list[p]->is(kCollectiveDone) && list[p]->operand(0)->op() == starts[i];
        if (!isFree(*list[p])) {
          places[i] = p;
          self(self, i + 1, p);
        }
        if (done)
          break;
      }
    };
    tryAll(tryAll, 0, 0);
    auto planned = parse(text);
    expectOk(gatherPrefetch(*planned, options), text);
    expectOk(reduceEarly(*planned, options), text);
    EXPECT_NEAR(total(*planned, options), best, best * 1e-9) << text;
  }
}

TEST(ScheduleOfPrograms, ThePlanSaysWhatCommunicationAdds) {
  for (unsigned accumulate : {1, 2, 4}) {
    CompileOptions options;
    options.ranks = 4;
    options.zero = 3;
    options.accumulate = accumulate;
    options.machine = "h200x8";
    auto result = compile(parse(kSmallModel), {}, options);
    ASSERT_TRUE(bool(result)) << toString(result.takeError());
    const plan::Plan &plan = *result->plan;
    double computed = 0, onLink = 0;
    for (const plan::Program &program : plan.programs())
      for (const plan::Command &command : program.commands())
        (command.communicator() ? onLink : computed) += double(runsPerStep(plan, program)) * command.predicted_us() / 1e3;
    EXPECT_NEAR(plan.predicted_ms(), computed + plan.exposed_ms(), 1e-6);
    EXPECT_GT(plan.exposed_ms(), 0);
    EXPECT_LE(plan.exposed_ms(), plan.exposed_ms_without_prefetch());
    // At most all of it, and what runs beside it one tenth longer.
    EXPECT_LE(plan.exposed_ms_without_prefetch(), onLink + 0.1 * computed);
  }
}

TEST(ScheduleOfPrograms, TenThousandOpsTakeWellBelowASecond) {
  auto graph = parse(randomProgram(1, 1000, false));
  ASSERT_GT(graph->numOps(), 10000u);
  CompileOptions options;
  options.machine = "h200x8-bf16";
  const std::clock_t begin = std::clock(); // of the processor: others may use it too
  expectOk(gatherPrefetch(*graph, options), "");
  expectOk(reduceEarly(*graph, options), "");
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 1.0);
}

} // namespace
} // namespace shardc
