// SPDX-License-Identifier: Apache-2.0
// Gives buffers with known lifetimes their addresses: dynamic storage allocation as pure data.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace shardc {

/// A buffer that lives over the half-open interval [first, last).
struct PackItem {
  uint64_t bytes = 0;
  uint64_t first = 0, last = 0;
};

struct PackResult {
  std::vector<uint64_t> offsets; ///< by item, multiples of the alignment
  uint64_t height = 0;           ///< largest end of an item; sizes count rounded up to the alignment
  uint64_t lowerBound = 0;       ///< largest sum of live sizes: no result is lower
};

/// Requires: first < last. Items that live together do not overlap in the result; what has no bytes lies at 0.
/// Deterministic: depends on the items and their order alone. Greedy with best fit in several orders, the lowest kept, and
/// improved by moving what sticks out to the front; stops at the bound. About half a second at most.
PackResult pack(llvm::ArrayRef<PackItem> items, uint64_t alignment = 256);

} // namespace shardc
