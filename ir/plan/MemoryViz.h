// SPDX-License-Identifier: Apache-2.0
// The memory of a step as PyTorch's viewer (pytorch.org/memory_viz) and torch.cuda._memory_viz read it.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// A pickled snapshot: device N is space N of the plan, a segment is a region; an event for each buffer as its life begins and
/// ends, in the order of the commands, at its predicted time, coloured by kind. Sizes are as they are counted, rounded up to
/// kAlignment. Requires: a sound plan.
void printMemoryViz(const plan::Plan &plan, llvm::raw_ostream &os);

} // namespace shardc
