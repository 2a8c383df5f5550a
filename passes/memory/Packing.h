// SPDX-License-Identifier: Apache-2.0
// Gives buffers with known lifetimes their addresses: dynamic storage allocation as pure data.
#pragma once

#include <cstdint>
#include <vector>

namespace shardc {

/// A buffer that lives over the half-open interval [first, last) and has `size` bytes.
struct PackItem {
  int64_t size = 0;
  int64_t first = 0, last = 0;
};

struct PackProblem {
  std::vector<PackItem> items;
  int64_t alignment = 256; ///< of sizes and offsets, bytes
};

struct PackSolution {
  std::vector<int64_t> offsets; ///< by item
  int64_t height = 0;           ///< largest end of an item, sizes rounded up to the alignment
  int64_t lowerBound = 0;       ///< largest sum of live rounded sizes: no solution is lower
};

/// Requires: sizes >= 0, first < last. Items that live together do not overlap in the solution.
/// Deterministic: depends on the items and their order alone. Greedy with best fit in several
/// orders, the lowest kept; stops at the bound.
PackSolution pack(const PackProblem &problem);

/// The bound alone.
int64_t packLowerBound(const PackProblem &problem);

} // namespace shardc
