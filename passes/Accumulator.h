// SPDX-License-Identifier: Apache-2.0
// Ops that can add to an array instead of making one: `acc?` or `c?`, whose memory result 0 then takes.
#pragma once

#include "ir/ops/OpDef.h"
#include <optional>

namespace shardc {

/// Position of the operand `acc?` or `c?`; nullopt if the op has none.
std::optional<unsigned> accumulatorOf(const OpDef &def);

} // namespace shardc
