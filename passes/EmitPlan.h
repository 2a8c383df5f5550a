// SPDX-License-Identifier: Apache-2.0
// The last step: scheduled graphs become a plan.
#pragma once

#include "ir/graph/Graph.h"
#include "ir/plan/Plan.h"
#include "passes/Options.h"

namespace shardc {

/// `train` (forward and backward ops become program `train`, update ops program `update`) and `eval` (program `eval`), both at
/// level scheduled and with equal lists of parameters. Buckets are `bucketLayout(train, ranks)`. `model` says where they came from.
/// The result passes `checkPlan`.
llvm::Expected<plan::Plan> emitPlan(const Graph &train, const Graph &eval, const plan::Model &model,
                                    const CompileOptions &options);

} // namespace shardc
