// SPDX-License-Identifier: Apache-2.0
// A lower packing from one that is too high: what sticks out is put where it drives out least.
#pragma once

#include "passes/memory/CanonicalSearch.h"

namespace shardc {

/// Requires: sizes rounded up and above 0; `offsets` is a packing; no item is larger
/// than `capacity`. No end is above `capacity` where a
/// packing is found; never proves that there is none. The random numbers are a fixed sequence. A step
/// is linear in the number of items; work is counted as searchCanonical does.
///
/// One item that has no place is taken at random and put where the weight of those in its way is
/// least; these have no place then. An item weighs by its bytes and its life, and more each time it is
/// driven out, so that no two of them go on driving each other out; for some steps after it was put
/// somewhere it stays if anything else can go. `attempt`: another number, another way: few long attempts
/// find less than many short ones.
SearchResult searchByEviction(llvm::ArrayRef<PackItem> items, llvm::ArrayRef<uint64_t> offsets,
                              uint64_t capacity, unsigned attempt, uint64_t work);

} // namespace shardc
