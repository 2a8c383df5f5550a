// SPDX-License-Identifier: Apache-2.0
// Takes away what nobody reads.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// Erases each op that has no effect, and no result that is an output or read by an op that stays. Returns the values that
/// erased params had, to compare with `Parameter::value` only.
llvm::DenseSet<const Value *> eraseDeadOps(Graph &graph);

} // namespace shardc
