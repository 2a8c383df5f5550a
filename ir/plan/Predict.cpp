// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/Predict.h"
#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace shardc {

std::vector<CommandSpan> predictSpans(const plan::Program &program) {
  std::vector<CommandSpan> spans;
  DenseMap<uint64_t, double> free, signalled; // of streams, of events
  double link = 0;                            // when it is free
  for (const plan::Command &command : program.commands()) {
    double start = free.lookup(command.stream());
    for (uint32_t event : command.waits())
      start = std::max(start, signalled.lookup(event));
    if (command.communicator())
      start = std::max(start, link);
    double end = start + command.predicted_us();
    if (command.communicator())
      link = end;
    free[command.stream()] = end;
    for (uint32_t event : command.signals())
      signalled[event] = end;
    spans.push_back({start, end});
  }
  return spans;
}

double endOf(ArrayRef<CommandSpan> spans) {
  double end = 0;
  for (const CommandSpan &span : spans)
    end = std::max(end, span.end);
  return end;
}

std::vector<double> positionTimes(const plan::Plan &plan) {
  std::vector<double> times;
  double start = 0, reached = 0; // of a program; the latest position
  for (const plan::Program &program : plan.programs()) {
    std::vector<CommandSpan> spans = predictSpans(program);
    for (const CommandSpan &span : spans)
      times.push_back(reached = std::max(reached, start + span.start));
    start += endOf(spans);
  }
  times.push_back(start);
  return times;
}

} // namespace shardc
