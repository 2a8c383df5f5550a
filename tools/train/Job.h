// SPDX-License-Identifier: Apache-2.0
// A training run, from the plan file to the results: what the ranks of this process do.
#pragma once

#include "runtime/Trainer.h"
#include "tools/train/Flags.h"
#include <atomic>
#include <optional>

namespace shardc {

struct JobResults {
  TrainResults train; ///< the same on all ranks
  bool isRoot = true; ///< rank 0 is in this process: it tells the user
  std::optional<int> exitCode; ///< of ranks that ran as processes of their own, and have said all
};

/// Runs all ranks of this process to their end: those of the plan as threads or as processes that it starts, or the one that a
/// launcher has made this process.
/// Returns the first error of any rank. Every rank checks what it can before the first step; none begins it unless all are
/// ready. A non-zero `stop` ends the run after the step.
llvm::Expected<JobResults> runJob(const TrainFlags &flags, const std::atomic<bool> &stop);

} // namespace shardc
