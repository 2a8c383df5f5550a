// SPDX-License-Identifier: Apache-2.0
// When the commands of a plan ran, beside what was predicted.
#pragma once

#include "ir/plan/Predict.h"
#include <vector>

namespace shardc {

/// Filled by an executor (ExecutorOptions.trace): of each program, its latest run. Threads may set different commands at once.
class Trace {
public:
  /// `plan` outlives the trace.
  explicit Trace(const plan::Plan &plan);

  /// Microseconds from the start of the program's run.
  void set(int program, int command, double start, double end) { spans_[program][command] = {start, end}; }

  llvm::ArrayRef<CommandSpan> spans(int program) const { return spans_[program]; } ///< by command

  /// As Perfetto and chrome://tracing read it: the programs that have run, one after another, a track for each stream; as measured,
  /// and as predicted.
  llvm::Error write(llvm::StringRef path) const;
  /// A table: what all commands of a kernel and phase took, and should have taken, the most expensive first; then programs.
  void printKernels(llvm::raw_ostream &os) const;

private:
  bool hasRun(int program) const { return !spans_[program].empty() && spans_[program].back().end >= 0; }

  const plan::Plan &plan_;
  std::vector<std::vector<CommandSpan>> spans_; ///< by program, then command
};

} // namespace shardc
