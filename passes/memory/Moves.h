// SPDX-License-Identifier: Apache-2.0
// Packing where buffers may change their place while they live: for what no packing with fixed places fits into.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "passes/memory/Packing.h"

namespace shardc {

/// `gaps`: ranges [from, to], ascending and apart, of positions p with first < p < last: the item may be copied to another place
/// between p - 1 and p. During the copy both places are taken.
struct MovableItem : PackItem {
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 1> gaps = {};
};

/// Where an item lies from the copy before position `from` on (of the first piece: from the item's `first` on).
struct Piece {
  uint64_t from = 0, offset = 0;
};

struct MovePacking {
  bool fits = false;
  std::vector<llvm::SmallVector<Piece, 1>> pieces; ///< by item, if it fits; one: it is not moved
  uint64_t movedBytes = 0;
};

/// Places all items below `capacity`, and moves few bytes. Begins with `packed`, which packing without moves found for the items. What
/// lives together does not overlap: copies before one position count as done at the same time. Deterministic; work is limited by
/// counts. Searches, so that "does not fit" says only that nothing was found.
MovePacking packWithMoves(llvm::ArrayRef<MovableItem> items, const PackResult &packed, uint64_t capacity, uint64_t alignment = 256);

} // namespace shardc
