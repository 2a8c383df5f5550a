// SPDX-License-Identifier: Apache-2.0
// Finds the values whose dim 0 runs over the batch, before shapes hide it.
#pragma once

#include "ir/graph/Graph.h"

namespace shardc {

/// Starts from the inputs that are marked and marks every value whose dim 0 is the batch, or the
/// batch times other dims with the rows of one item side by side; tells it to the dropouts (attr
/// batch_major).
void markBatchMajor(Graph &graph, int64_t batch);

} // namespace shardc
