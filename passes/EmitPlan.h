// SPDX-License-Identifier: Apache-2.0
// The last step: scheduled graphs become a plan.
#pragma once

#include "ir/graph/Graph.h"
#include "ir/plan/Plan.h"
#include "passes/Options.h"

namespace shardc {

/// A program to be: `graph` at level scheduled.
struct ProgramGraph {
  std::string name;
  std::unique_ptr<Graph> graph;
};

/// All graphs have equal lists of parameters; buckets are `bucketLayout` of any. Programs stand in the order of a step, eval last.
/// `model` says where they came from. The result passes `checkPlan`.
llvm::Expected<plan::Plan> emitPlan(llvm::ArrayRef<ProgramGraph> programs, const plan::Model &model, const CompileOptions &options);

} // namespace shardc
