// SPDX-License-Identifier: Apache-2.0
// The whole compiler, from an imported graph to a plan.
#pragma once

#include "passes/EmitPlan.h"
#include "passes/PassRunner.h"

namespace shardc {

/// What a compilation leaves. After `--stop-after` there is only `step`, as it was then.
struct Compilation {
  std::unique_ptr<Graph> step;        ///< the only or last micro-step
  std::vector<ProgramGraph> programs; ///< the plan's, in its order
  std::optional<plan::Plan> plan;
};

/// Requires: `graph` at level imported, with outputs "loss_sum" and "loss_count". `model`: what the plan says of its origin.
llvm::Expected<Compilation> compile(std::unique_ptr<Graph> graph, const plan::Model &model,
                                    const CompileOptions &options, const DebugOptions &debug = {});

/// Every pass by name, in the order of the pipeline, for shardc-opt.
struct NamedPass {
  llvm::StringLiteral name;
  Pass pass;
};
llvm::ArrayRef<NamedPass> allPasses();

} // namespace shardc
