// SPDX-License-Identifier: Apache-2.0
// Ops that add to an array instead of making one: `acc?`, which result 0 then overwrites.
#pragma once

#include "ir/ops/OpDef.h"
#include <optional>

namespace shardc {

/// Position of the operand `acc?`; nullopt if the op has none.
std::optional<unsigned> accumulatorOf(const OpDef &def);

} // namespace shardc
