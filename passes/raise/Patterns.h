// SPDX-License-Identifier: Apache-2.0
// The patterns of pass `raise`. Each looks at one op as the last of its pattern; on a match it replaces the op's result and
// returns true (dead pieces are left to dce).
#pragma once

#include "ir/graph/Graph.h"

namespace shardc::raising {

bool rmsNorm(Op &root);
bool layerNorm(Op &root);
bool gelu(Op &root);
bool geluTanh(Op &root);
bool silu(Op &root);
bool embedding(Op &root);
bool attention(Op &root);
bool guardedSoftmax(Op &root);

} // namespace shardc::raising
