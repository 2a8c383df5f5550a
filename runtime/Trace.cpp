// SPDX-License-Identifier: Apache-2.0
#include "runtime/Trace.h"
#include "ir/base/File.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Text.h"
#include "ir/plan/TraceEvents.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <map>
#include <set>

namespace shardc {

Trace::Trace(const plan::Plan &plan) : plan_(plan) {
  for (const plan::Program &program : plan.programs())
    spans_.emplace_back(program.commands_size());
}

llvm::Error Trace::write(llvm::StringRef path) const {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    constexpr int64_t kMeasured = 1, kPredicted = 2;
    TraceEvents events(os);
    std::set<uint32_t> streams;
    for (const plan::Program &program : plan_.programs())
      for (const plan::Command &command : program.commands())
        streams.insert(command.stream());
    for (auto [process, name] : {std::pair(kMeasured, "measured"), {kPredicted, "predicted"}}) {
      events.nameProcess(process, name);
      for (uint32_t stream : streams)
        events.nameTrack(process, stream, streamName(stream));
    }
    double start = 0; // of a program
    for (int p = 0; p < plan_.programs_size(); ++p) {
      if (!hasRun(p))
        continue;
      const plan::Program &program = plan_.programs(p);
      std::vector<CommandSpan> predicted = predictSpans(program);
      for (int c = 0; c < program.commands_size(); ++c)
        for (auto [process, span] : {std::pair(kMeasured, spans_[p][c]), {kPredicted, predicted[c]}})
          events.command(plan_, program.commands(c), process, start + span.start, start + span.end);
      start += std::max(endOf(spans_[p]), endOf(predicted));
    }
    events.finish();
    return llvm::Error::success();
  });
}

void Trace::printKernels(llvm::raw_ostream &os) const {
  struct Row {
    double measured = 0, predicted = 0, flops = 0, bytes = 0;
    int count = 0;
  };
  std::map<std::string, Row> rows;
  Row all;
  for (int p = 0; p < plan_.programs_size(); ++p) {
    if (!hasRun(p))
      continue;
    for (int c = 0; c < plan_.programs(p).commands_size(); ++c) {
      const plan::Command &command = plan_.programs(p).commands(c);
      std::string name = command.kernel() + " " + phaseName(command.phase()).str();
      for (Row *row : {&rows[name], &all}) {
        row->measured += spans_[p][c].end - spans_[p][c].start;
        row->predicted += command.predicted_us();
        row->flops += command.flops();
        row->bytes += command.moved_bytes();
        ++row->count;
      }
    }
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) { return a.second.measured > b.second.measured; });
  sorted.push_back({"all", all});
  os << llvm::formatv("{0,-28} {1,6} {2,12} {3,12} {4,10} {5,8}\n", "kernel", "count", "measured ms", "predicted ms", "GFLOP/s", "GB/s");
  for (auto &[kernel, row] : sorted) {
    double seconds = std::max(row.measured, 1e-3) * 1e-6;
    os << llvm::formatv("{0,-28} {1,6} {2,12:f3} {3,12:f3} {4,10:f0} {5,8:f1}\n", kernel, row.count, row.measured / 1e3,
                        row.predicted / 1e3, row.flops / seconds * 1e-9, row.bytes / seconds * 1e-9);
  }
  for (int p = 0; p < plan_.programs_size(); ++p)
    if (hasRun(p))
      os << llvm::formatv("{0,-28} {1,6} {2,12:f3} {3,12:f3}\n", "program " + plan_.programs(p).name(),
                          plan_.programs(p).commands_size(), endOf(spans_[p]) / 1e3, endOf(predictSpans(plan_.programs(p))) / 1e3);
}

} // namespace shardc
