// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/PlanTrace.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Text.h"
#include "ir/plan/TraceEvents.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <array>
#include <numeric>
#include <set>

using namespace llvm;

namespace shardc {
namespace {

constexpr int64_t kProcess = 1, kProgramTrack = 1000; // behind all streams

class Writer {
public:
  Writer(const plan::Plan &plan, raw_ostream &os) : plan_(plan), events_(os) {}

  void run() {
    writeNames();
    double start = 0; // of a program
    for (const plan::Program &program : plan_.programs()) {
      std::vector<CommandSpan> spans = predictSpans(program);
      writeProgram(program, spans, start);
      start += endOf(spans);
    }
    writeMemory();
    events_.finish();
  }

private:
  void writeNames() {
    events_.nameProcess(kProcess,
                        plan_.ranks() == 1 ? "predicted" : "predicted, each of " + utostr(plan_.ranks()) + " ranks");
    std::set<uint32_t> streams;
    for (const plan::Program &program : plan_.programs())
      for (const plan::Command &command : program.commands())
        streams.insert(command.stream());
    for (uint32_t stream : streams)
      events_.nameTrack(kProcess, stream, streamName(stream));
    events_.nameTrack(kProcess, kProgramTrack, "programs");
  }

  void writeProgram(const plan::Program &program, ArrayRef<CommandSpan> spans, double start) {
    uint64_t runs = runsPerStep(plan_, program);
    events_.slice({kProcess, kProgramTrack, start}, endOf(spans), program.name(),
                  runs ? utostr(runs) + (runs == 1 ? " time" : " times") + " a step" : "not part of a step");
    DenseMap<uint32_t, TracePoint> signals; // by event: in the slice that signals it
    DenseMap<uint32_t, double> free;        // when the last command of a stream ended
    for (auto [command, span] : zip_equal(program.commands(), spans)) {
      // Waiting for a collective is all that its `collective_done` does: this is how one sees it.
      double begin = command.kernel() == "collective_done" ? free.lookup(command.stream()) : span.start;
      free[command.stream()] = span.end;
      events_.command(plan_, command, kProcess, start + begin, start + span.end);
      TracePoint point{kProcess, command.stream(), start + begin};
      for (uint32_t event : command.waits())
        if (auto signal = signals.find(event); signal != signals.end())
          events_.arrow(signal->second, point);
      for (uint32_t event : command.signals())
        signals[event] = point;
    }
  }

  /// What changes at a position, as the plan counts it.
  void writeMemory() {
    std::vector<double> times = positionTimes(plan_);
    struct Change {
      uint64_t position;
      plan::BufferKind kind;
      int64_t bytes;
    };
    std::vector<Change> changes;
    std::array<uint64_t, plan::BufferKind_ARRAYSIZE> live{};
    std::array<bool, plan::BufferKind_ARRAYSIZE> isThere{};
    for (const plan::Buffer &b : plan_.buffers()) {
      if (!b.bytes() || (!b.persistent() && b.first() >= b.last()))
        continue;
      isThere[b.kind()] = true;
      if (b.persistent()) {
        live[b.kind()] += alignedBytes(b);
        continue;
      }
      changes.push_back({b.first(), b.kind(), int64_t(alignedBytes(b))});
      changes.push_back({b.last(), b.kind(), -int64_t(alignedBytes(b))});
    }
    llvm::stable_sort(changes, [](const Change &a, const Change &b) { return a.position < b.position; });
    auto writeAll = [&](double us) {
      events_.counter(kProcess, "live", us, std::accumulate(live.begin(), live.end(), uint64_t(0)));
    };
    for (int kind = 0; kind < plan::BufferKind_ARRAYSIZE; ++kind)
      if (isThere[kind])
        writeCounter(plan::BufferKind(kind), 0, live[kind]);
    writeAll(0);
    for (auto next = changes.begin(); next != changes.end();) {
      uint64_t position = next->position;
      std::set<plan::BufferKind> touched;
      for (; next != changes.end() && next->position == position; ++next) {
        live[next->kind] += uint64_t(next->bytes);
        touched.insert(next->kind);
      }
      double us = times[position];
      for (plan::BufferKind kind : touched)
        writeCounter(kind, us, live[kind]);
      writeAll(us);
    }
  }

  void writeCounter(plan::BufferKind kind, double us, uint64_t bytes) {
    events_.counter(kProcess, ("live " + kindName(kind)).str(), us, bytes);
  }

  const plan::Plan &plan_;
  TraceEvents events_;
};

} // namespace

void printTrace(const plan::Plan &plan, raw_ostream &os) { Writer(plan, os).run(); }

} // namespace shardc
