// SPDX-License-Identifier: Apache-2.0
// Loops over the cores (OpenMP where it is there).
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace shardc::host {

/// Most threads that work at once; a plan's workspaces have room for as many (see
/// ir/ops/Attention.cpp).
constexpr int kHostSlots = 16;

/// Calls body(begin, end, slot) for disjoint ranges that cover [0, n); every border except n is a
/// multiple of `grain`. slot < kHostSlots is not used by two threads at once. How many ranges there
/// are depends on the machine, so a result must not depend on where the borders are. Serial where
/// n <= grain. Does not nest: called inside a body it is serial, with slot 0.
void parallelFor(int64_t n, int64_t grain,
                 llvm::function_ref<void(int64_t begin, int64_t end, int slot)> body);

/// As above, one unit after another to whoever is free: for few, heavy or uneven units. `cost` is
/// what one takes, in multiplications or so: little work stays on the calling thread.
void parallelTasks(int64_t n, double cost, llvm::function_ref<void(int64_t task, int slot)> body);

/// How many threads loops of the calling thread run on. No bit of any result depends on it.
int numThreads();

/// How many threads each of `ranks` ranks may use, where all run as threads of this process: a fair share, at least 1.
int threadsPerRank(unsigned ranks);

/// Sets `numThreads()` of the calling thread, as each rank's thread does when it starts; other threads keep theirs.
void useThreads(int threads);

} // namespace shardc::host
