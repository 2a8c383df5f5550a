// SPDX-License-Identifier: Apache-2.0
// Writes the JSON that Perfetto and chrome://tracing read: processes with tracks, slices, arrows, counters.
#pragma once

#include "ir/plan/Predict.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// A slice of a stream: where an arrow begins or ends.
struct TracePoint {
  int64_t process, track;
  double us;
};

/// Times in microseconds. Everything is written at once, between construction and `finish`.
class TraceEvents {
public:
  explicit TraceEvents(llvm::raw_ostream &os);
  void finish();

  void nameProcess(int64_t process, llvm::StringRef name);
  void nameTrack(int64_t process, int64_t track, llvm::StringRef name);
  /// A command, on the track of its stream.
  void command(const plan::Plan &plan, const plan::Command &command, int64_t process, double start, double end);
  /// Any other slice, `detail` its only argument.
  void slice(TracePoint at, double duration, llvm::StringRef name, llvm::StringRef detail);
  /// From the slice that runs at one point to the one that runs at the other.
  void arrow(TracePoint from, TracePoint to);
  void counter(int64_t process, llvm::StringRef name, double us, uint64_t value);

private:
  void name(const char *what, int64_t process, int64_t track, llvm::StringRef name);
  void at(const char *phase, TracePoint point);

  llvm::raw_ostream &os_;
  llvm::json::OStream json_;
  int64_t arrows_ = 0;
};

} // namespace shardc
