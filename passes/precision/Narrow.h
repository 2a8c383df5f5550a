// SPDX-License-Identifier: Apache-2.0
// Parts of set-precision: which values become 16-bit floats.
#pragma once

#include "ir/graph/Graph.h"

namespace shardc::precision {

/// Turns f32 values into `narrow`, a 16-bit float, from the parameters on: parameters and what is computed from them. Stays f32: what does
/// not depend on parameters (inputs, masks, positions), rounded where it meets them, and within the finite range of `narrow`; and the
/// loss: sums, and what leads to nothing else. Ops themselves keep statistics and sums in f32 (see their type rules). Requires: level
/// imported.
void narrowValues(Graph &graph, DType narrow);

} // namespace shardc::precision
