// SPDX-License-Identifier: Apache-2.0
// What a trace tells of a run: every command once, streams and waits in order, and what was predicted beside it.
#include "runtime/Trace.h"
#include "TestFiles.h"
#include "runtime/Executor.h"
#include "runtime/Ranks.h"
#include "runtime/comm/Local.h"
#include "tests/runtime/RankPlan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <map>

namespace shardc {
namespace {

struct Span {
  double start, end;
};

/// By process (1 measured, 2 predicted), in the order of the file.
std::map<int64_t, std::vector<Span>> spansOf(llvm::StringRef path) {
  std::map<int64_t, std::vector<Span>> spans;
  auto file = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(file));
  llvm::json::Value json = llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
  for (const llvm::json::Value &value : *json.getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object &event = *value.getAsObject();
    if (*event.getString("ph") == "X")
      spans[*event.getInteger("pid")].push_back({*event.getNumber("ts"), *event.getNumber("ts") + *event.getNumber("dur")});
  }
  return spans;
}

/// Runs both programs on two ranks; rank 0 is traced.
void run(const RankPlan &p, Trace &trace, int steps) {
  auto group = makeLocalGroup(2);
  llvm::cantFail(runRanks(group, [&](Communicator &c) -> llvm::Error {
    ExecutorOptions options;
    options.communicator = &c;
    options.trace = c.rank() == 0 ? &trace : nullptr;
    auto executor = llvm::cantFail(Executor::create(p.plan, options));
    setParameters(p, *executor);
    setInputs(p, *executor, 0);
    for (int step = 0; step < steps; ++step)
      for (int program = 0; program < p.plan.programs_size(); ++program)
        if (llvm::Error error = executor->run(program))
          return error;
    return llvm::Error::success();
  }));
}

TEST(Trace, HasEveryCommandInOrder) {
  test::TemporaryFolder folder;
  RankPlan p = slicedPlan(2);
  double predicted = 0;
  for (plan::Program &program : *p.plan.mutable_programs())
    for (plan::Command &command : *program.mutable_commands())
      command.set_predicted_us(predicted += 2);
  Trace trace(p.plan);
  run(p, trace, 3);
  llvm::cantFail(trace.write(folder.path("t.json")));
  auto spans = spansOf(folder.path("t.json"));
  size_t at = 0;
  double programEnd = 0;
  for (const plan::Program &program : p.plan.programs()) {
    std::map<unsigned, double> streams[3];
    std::map<uint32_t, double> events[3];
    double programStart = programEnd;
    for (const plan::Command &command : program.commands()) {
      SCOPED_TRACE(program.name() + " " + command.kernel());
      for (int process : {1, 2}) {
        ASSERT_GT(spans[process].size(), at);
        Span span = spans[process][at];
        EXPECT_LE(span.start, span.end);
        EXPECT_GE(span.start, std::max(programStart, streams[process][command.stream()]) - 1e-6);
        for (uint32_t event : command.waits())
          EXPECT_GE(span.start, events[process][event] - 1e-6);
        streams[process][command.stream()] = span.end;
        for (uint32_t event : command.signals())
          events[process][event] = span.end;
        programEnd = std::max(programEnd, span.end);
      }
      EXPECT_NEAR(spans[2][at].end - spans[2][at].start, command.predicted_us(), 1e-9);
      ++at;
    }
  }
  EXPECT_EQ(spans[1].size(), at);
  EXPECT_EQ(spans[2].size(), at);
}

TEST(Trace, LeavesOutWhatHasNotRun) {
  test::TemporaryFolder folder;
  RankPlan p = slicedPlan(2);
  Trace trace(p.plan);
  trace.set(1, 0, 1, 3); // update has one command
  llvm::cantFail(trace.write(folder.path("t.json")));
  auto spans = spansOf(folder.path("t.json"));
  ASSERT_EQ(spans[1].size(), 1u);
  EXPECT_EQ(spans[1][0].start, 1);
  EXPECT_EQ(spans[1][0].end, 3);
}

TEST(Trace, AddsUpKernels) {
  RankPlan p = slicedPlan(2);
  plan::Command &command = *p.plan.mutable_programs(1)->mutable_commands(0);
  command.set_predicted_us(5000);
  command.set_phase(2);
  command.set_flops(4e9);
  command.set_moved_bytes(2e8);
  Trace trace(p.plan);
  trace.set(1, 0, 1000, 3000);
  std::string text;
  llvm::raw_string_ostream os(text);
  trace.printKernels(os);
  EXPECT_EQ(text, "kernel                        count  measured ms predicted ms    GFLOP/s     GB/s\n"
                  "fused update                      1        2.000        5.000       2000    100.0\n"
                  "all                               1        2.000        5.000       2000    100.0\n"
                  "program update                    1        3.000        5.000\n");
}

} // namespace
} // namespace shardc
