// SPDX-License-Identifier: Apache-2.0
// Branch and bound: a packing below a given height, or the proof that there is none.
#pragma once

#include "passes/memory/Packing.h"

namespace shardc {

/// Which of the items at one offset is tried first: the larger by these, compared in this order.
/// Total: the largest sum of what is still to be placed in one of the item's sections; area: bytes
/// times life; width: life.
enum class Preference { WidthAreaTotal, TotalAreaWidth, TotalWidthArea };

struct SearchResult {
  enum Verdict { Found, Impossible, OutOfWork } verdict = OutOfWork;
  std::vector<uint64_t> offsets; ///< by item, where found
  uint64_t work = 0;             ///< that it took
};

/// Requires: sizes rounded up and above 0, first < last. Depth first: the stack and the memory grow
/// with the number of items, at most some thousand. No end is above `capacity` where a packing is
/// found. Work: items and sections looked at, a billion takes about a second.
///
/// Any packing can be pushed down until every item lies at 0 or on another. So it is enough to
/// place items from the bottom up, each as low as those before it permit: canonical placements. The
/// search, its orders and its bounds are those of MiniMalloc (Moffitt, ASPLOS 2023,
/// doi 10.1145/3623278.3624752), written anew; that an item left behind must be lifted is ours.
SearchResult searchCanonical(llvm::ArrayRef<PackItem> items, uint64_t capacity,
                             Preference preference, uint64_t work);

} // namespace shardc
