// SPDX-License-Identifier: Apache-2.0
// `--check-races`: every program runs twice, as planned and with disjoint memory, and must leave the same bits.
#pragma once

#include "runtime/Executor.h"

namespace shardc {

struct RaceCheckOptions {
  /// Two groups of the plan's ranks, one for each of the two runs; they outlive the executor. Null: one rank. Whoever aborts
  /// one must abort the other.
  Communicator *planned = nullptr, *disjoint = nullptr;
  /// Not 0: random pauses in both runs (ExecutorOptions.delaySeed).
  uint64_t delaySeed = 0;
};

/// One rank in two memories, to be used as one executor: `buffer` and `scalars` are those of the run as planned, and what
/// the caller writes there before a program (inputs, scalars, weights) the other run sees too. `run` compares after each
/// program; a difference is an error "check-races: program P: buffer B, byte N: got X, wanted Y" and aborts both groups.
llvm::Expected<std::unique_ptr<Executor>> createRaceChecked(const plan::Plan &plan, const RaceCheckOptions &options);

/// The first byte in which the persistent buffers, or the outputs of `program`, differ; success if none does. Both
/// executors are of `plan` and of one rank; the second has disjoint memory.
llvm::Error compareMemory(const plan::Plan &plan, int program, Executor &planned, Executor &disjoint);

} // namespace shardc
