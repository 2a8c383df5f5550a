// SPDX-License-Identifier: Apache-2.0
// The whole compiler, from an imported graph to a plan.
#pragma once

#include "ir/plan/Plan.h"
#include "passes/PassRunner.h"

namespace shardc {

/// What a compilation leaves. `eval` is the forward pass alone, without dropout. After `--stop-after` the plan is missing.
struct Compilation {
  std::unique_ptr<Graph> train, eval;
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
