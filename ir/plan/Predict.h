// SPDX-License-Identifier: Apache-2.0
// When the commands of a program run, as the plan predicts.
#pragma once

#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

/// Microseconds from the start of a program's run.
struct CommandSpan {
  double start = 0, end = -1; ///< end < start: has not run
};

/// Each command when its stream and what it waits for allow, for its predicted time; collectives one after another, as they share
/// the link. By command.
std::vector<CommandSpan> predictSpans(const plan::Program &program);

/// When the last of them ends.
double endOf(llvm::ArrayRef<CommandSpan> spans);

/// When each position of the plan is reached, its programs run once each, one after another; at the end, when all have ended. Lifetimes
/// are in positions; where streams run ahead of each other, a position counts from when all before it began.
std::vector<double> positionTimes(const plan::Plan &plan);

} // namespace shardc
