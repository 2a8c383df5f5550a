// SPDX-License-Identifier: Apache-2.0
// Sound plans for several ranks, written by hand: y = x * w, loss = sum(y * y), at each stage and
// with micro-steps.
#pragma once

#include "tests/plan/SmallPlan.h"

namespace shardc {

/// One bucket of 24 elements (w: [2, 3], the rest is padding). Compute on stream 0, gathers on 1,
/// reductions on 2. Requires: `ranks` divides 24. Buffers share no memory.
plan::Plan rankPlan(unsigned ranks, unsigned stage, unsigned accumulate = 1);

/// Lifetimes, offsets (nothing shared), size and bound of the space, and versions, as the commands
/// want them: counted naively.
void finishPlan(plan::Plan &plan);

plan::Program &programOf(plan::Plan &plan, llvm::StringRef name);
/// The n-th command of that kernel in a program, its index. Requires: it is there.
int findCommand(const plan::Plan &plan, llvm::StringRef program, llvm::StringRef kernel, int n = 0);
/// The buffer of that name. Requires: it is there.
plan::Buffer &bufferOf(plan::Plan &plan, llvm::StringRef name);

} // namespace shardc
