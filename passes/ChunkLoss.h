// SPDX-License-Identifier: Apache-2.0
// The part of pass chunk-loss that tests call with sizes of their own.
#pragma once

#include "ir/graph/Graph.h"

namespace shardc {

/// Cuts each product that makes logits alone, cross entropy and their gradients into chunks of rows whose logits take about `bytes`.
/// Requires: level step.
void chunkLoss(Graph &graph, int64_t bytes);

} // namespace shardc
