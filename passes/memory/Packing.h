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
  uint64_t height = 0;     ///< largest end of an item; sizes count rounded up to the alignment
  uint64_t lowerBound = 0; ///< largest sum of live sizes: no result is lower
  /// What found it: "none" (nothing to place), an order, "rounded", "local-search", "eviction", "search".
  const char *method = "none";
};

/// How hard to try. A packing is good enough at a height of `capacity` if that is given, else within
/// `slack` of the bound, where only a little work is done to lower it further. Work is counted, no clock
/// decides: every machine and every run finds the same result.
struct PackLimits {
  uint64_t capacity = 0;
  uint64_t slack = 64 << 10;
  uint64_t work = uint64_t(1) << 31; ///< items looked at; about two seconds
};

/// Requires: first < last. Items that live together do not overlap in the result; what has no bytes
/// lies at 0. Deterministic: depends on the items, the alignment and the limits alone; in
/// another order the same items get the same offsets, but for items that are equal.
PackResult pack(llvm::ArrayRef<PackItem> items, uint64_t alignment = 256,
                const PackLimits &limits = {});

} // namespace shardc
