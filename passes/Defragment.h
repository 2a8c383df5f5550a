// SPDX-License-Identifier: Apache-2.0
// Pass `defragment`, which works on plans: copies of buffers to another place, where nothing else lets a plan fit.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {
struct Machine;

/// Requires: a plan whose only space is laid out, but no versions (`emit::writeVersions`). Where the space is larger than `capacity`
/// bytes and its lower bound is not: looks for a way to fit by moving activations, few bytes in all, and if there is one, inserts the
/// moves and lays the space out anew. A move is a command `copy` of all bytes of one buffer to another, on the compute stream, at a moment when nothing but
/// later reads is left to be done with the buffer; those read the new one, which has its name. Moves have predicted times. Otherwise
/// leaves the plan as it is.
void defragment(plan::Plan &plan, uint64_t capacity, const Machine &machine);

} // namespace shardc
