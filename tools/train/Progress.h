// SPDX-License-Identifier: Apache-2.0
// What a user sees while training, on stderr.
#pragma once

#include "runtime/TrainLog.h"
#include <chrono>

namespace shardc {

/// On a terminal one line that is written over; elsewhere about twenty lines in all. Nothing with
/// --quiet.
class Progress {
public:
  Progress();
  void step(const StepReport &report, int64_t totalSteps);
  void eval(int64_t step, const EvalReport &report);
  /// Ends the line that is written over.
  void finish();

private:
  bool isTerminal_;
  bool open_ = false; // the cursor stands behind a line
  std::chrono::steady_clock::time_point start_, shown_;
};

} // namespace shardc
