// SPDX-License-Identifier: Apache-2.0
// A better order from a good one.
#pragma once

#include "passes/memory/Greedy.h"

namespace shardc {

/// What sticks out at the top was placed too late: it, or an item that lives with it, goes further
/// to the front. An order that is not worse is kept; 300 of them are tried, less where `enough` is
/// reached or so much work is done. `offsets` and `height` are the result of `order`, and of the
/// best order in the end. The random numbers are a fixed sequence.
void improveOrder(llvm::ArrayRef<PackItem> items, GreedyOrder &order,
                  std::vector<uint64_t> &offsets, uint64_t &height, uint64_t enough, uint64_t work);

} // namespace shardc
