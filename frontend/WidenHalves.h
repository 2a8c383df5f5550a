// SPDX-License-Identifier: Apache-2.0
// A model that was exported in 16 bits, made f32: what is computed in 16 bits, beside f32 masters, is for --precision to say.
#pragma once

#include "ir/graph/Graph.h"

namespace shardc {

/// Every f16 and bf16 value of an imported graph becomes f32, parameters, inputs and casts too; the sources of parameters stay as they
/// are stored. The lowest and the largest f16, which fill masks and clamp, become those of f32. Says whether there were any.
bool widenHalves(Graph &graph);

} // namespace shardc
