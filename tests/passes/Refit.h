// SPDX-License-Identifier: Apache-2.0
// What a planner would have written along with a damage, so that the damage itself must be seen: by itself, naively.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// Size and bound of the space, from its buffers.
void refitSpace(plan::Plan &plan);
/// Lifetimes as the commands want them.
void refitLifetimes(plan::Plan &plan);
/// A place of its own for every buffer, but for those that a command overwrites in place: the same for these.
void spreadBuffers(plan::Plan &plan);

} // namespace shardc
