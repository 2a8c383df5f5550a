// SPDX-License-Identifier: Apache-2.0
#include "runtime/Trace.h"
#include "ir/base/File.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <map>

namespace shardc {
namespace {

constexpr const char *kStreams[] = {"compute", "gather", "reduce", "copy"};

std::string streamName(unsigned stream) {
  return stream < std::size(kStreams) ? kStreams[stream] : "stream " + std::to_string(stream);
}

llvm::StringRef textAt(const plan::Plan &plan, uint32_t index) {
  return index < uint32_t(plan.strings_size()) ? llvm::StringRef(plan.strings(index)) : "";
}

/// Names a process (measured, predicted) or one of its tracks.
void writeName(llvm::json::OStream &json, const char *what, int64_t process, int64_t track, llvm::StringRef name) {
  json.object([&] {
    json.attribute("ph", "M");
    json.attribute("name", what);
    json.attribute("pid", process);
    json.attribute("tid", track);
    json.attributeObject("args", [&] { json.attribute("name", name); });
  });
}

void writeSpan(llvm::json::OStream &json, const plan::Plan &plan, const plan::Command &command, int64_t process, double start,
               double end) {
  llvm::StringRef place = textAt(plan, command.place());
  json.object([&] {
    json.attribute("ph", "X");
    json.attribute("name", place.empty() ? llvm::StringRef(command.kernel()) : place);
    json.attribute("pid", process);
    json.attribute("tid", int64_t(command.stream()));
    json.attribute("ts", start);
    json.attribute("dur", end - start);
    json.attributeObject("args", [&] {
      json.attribute("kernel", command.kernel());
      json.attribute("layer", textAt(plan, command.layer()));
      json.attribute("predicted_us", command.predicted_us());
      json.attribute("flops", command.flops());
      json.attribute("bytes", command.moved_bytes());
    });
  });
}

} // namespace

Trace::Trace(const plan::Plan &plan) : plan_(plan) {
  for (const plan::Program &program : plan.programs())
    spans_.emplace_back(program.commands_size());
}

double Trace::endOf(llvm::ArrayRef<Span> spans) {
  double end = 0;
  for (const Span &span : spans)
    end = std::max(end, span.end);
  return end;
}

std::vector<Trace::Span> Trace::predict(const plan::Program &program) const {
  std::vector<Span> spans;
  llvm::DenseMap<uint64_t, double> free, signalled; // of streams, of events
  for (const plan::Command &command : program.commands()) {
    double start = free.lookup(command.stream());
    for (uint32_t event : command.waits())
      start = std::max(start, signalled.lookup(event));
    double end = start + command.predicted_us();
    free[command.stream()] = end;
    for (uint32_t event : command.signals())
      signalled[event] = end;
    spans.push_back({start, end});
  }
  return spans;
}

llvm::Error Trace::write(llvm::StringRef path) const {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    constexpr int64_t kMeasured = 1, kPredicted = 2;
    llvm::json::OStream json(os);
    json.object([&] {
      json.attribute("displayTimeUnit", "ms");
      json.attributeArray("traceEvents", [&] {
        std::map<unsigned, std::string> streams;
        for (const plan::Program &program : plan_.programs())
          for (const plan::Command &command : program.commands())
            streams[command.stream()] = streamName(command.stream());
        for (auto [process, name] : {std::pair(kMeasured, "measured"), {kPredicted, "predicted"}}) {
          writeName(json, "process_name", process, 0, name);
          for (auto &[stream, text] : streams)
            writeName(json, "thread_name", process, stream, text);
        }
        double start = 0; // of a program
        for (int p = 0; p < plan_.programs_size(); ++p) {
          if (!hasRun(p))
            continue;
          const plan::Program &program = plan_.programs(p);
          std::vector<Span> predicted = predict(program);
          for (int c = 0; c < program.commands_size(); ++c)
            for (auto [process, span] : {std::pair(kMeasured, spans_[p][c]), {kPredicted, predicted[c]}})
              writeSpan(json, plan_, program.commands(c), process, start + span.start, start + span.end);
          start += std::max(endOf(spans_[p]), endOf(predicted));
        }
      });
    });
    os << '\n';
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
      constexpr const char *kPhases[] = {" forward", " backward", " update"};
      std::string name = command.kernel() + (command.phase() < std::size(kPhases) ? kPhases[command.phase()] : "");
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
                          plan_.programs(p).commands_size(), endOf(spans_[p]) / 1e3, endOf(predict(plan_.programs(p))) / 1e3);
}

} // namespace shardc
