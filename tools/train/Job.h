// SPDX-License-Identifier: Apache-2.0
// A training run, from the plan file to the results: what the ranks of this process do.
#pragma once

#include "runtime/Trainer.h"
#include "tools/train/Flags.h"
#include <csignal>

namespace shardc {

/// Runs all ranks of this process to their end and returns rank 0's results, or the first error of any rank. Every rank
/// checks what it can before the first step; none begins it unless all are ready. A non-zero `stop` ends the run after the step.
llvm::Expected<TrainResults> runJob(const TrainFlags &flags, const volatile std::sig_atomic_t &stop);

} // namespace shardc
