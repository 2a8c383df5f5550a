// SPDX-License-Identifier: Apache-2.0
// Runs a plan as it would be run, each rank and each stream on a thread, over memory that starts as garbage: what it leaves.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

struct RunOptions {
  bool disjoint = false;
  uint64_t delaySeed = 0; ///< 0: no pauses
};

struct RunResult {
  bool bound = false; ///< every command found its kernel on every rank
  /// Outputs of two steps and evaluations, and the parameters at the end, of all ranks; empty: a rank failed.
  std::string bytes;
};

/// Inputs and parameters are drawn by name and index, so that every plan of a model has the same ones. Requires: parameters are f32.
RunResult runPlan(const plan::Plan &plan, const RunOptions &options);

} // namespace shardc
