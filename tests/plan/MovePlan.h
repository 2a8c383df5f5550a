// SPDX-License-Identifier: Apache-2.0
// A sound plan that needs 4 units of memory at one time, and 5 if no buffer changes its place.
#pragma once

#include "tests/plan/SmallPlan.h"

namespace shardc {

/// The small plan, and before it seven buffers of 1, 2 and 3 units of `unit` bytes, which are written, and summed up where they end, so
/// that the loss is x * w's and `movePlanSum`. Two buffers of 1 unit (u1, u2) must each lie at an end of 4 units, as each lives alone with one of
/// 3 (s, r); the third (u3) lives with both, and leaves no room for 2 units beside u1 (p), or beside u2 (q). Lifetimes are there; what
/// comes and goes has no place yet. Requires: a multiple of 256.
plan::Plan movePlan(uint64_t unit);
double movePlanSum(uint64_t unit);

} // namespace shardc
