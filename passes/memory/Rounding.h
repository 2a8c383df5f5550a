// SPDX-License-Identifier: Apache-2.0
// Sizes in a coarse unit: a rougher problem, whose packings are found faster and nearly fit the real one.
#pragma once

#include "passes/memory/Packing.h"

namespace shardc {

/// In a training step most sizes are small multiples of one number of bytes, and others are a little more: a layer's parameters
/// are matrices and a few norms. Rounded they fit each other exactly, where a search else meets gaps that are a little too small.
struct RoundedItems {
  uint64_t unit = 0;              ///< bytes; 0: no rounding is small enough
  std::vector<PackItem> items;    ///< sizes in units, above 0
  std::vector<uint32_t> original; ///< by rounded item: index of the item that it was
};

/// By the largest power of two above the alignment with which the peak, were all that rounding changes there beside the items,
/// is at most `most` bytes higher. What has less than half a unit is left out: all of it changes.
RoundedItems roundSizes(llvm::ArrayRef<PackItem> items, uint64_t alignment, uint64_t most);

/// All items: from the bottom up in a packing of the rounded ones, then what was left out. Where each is put at the lowest
/// place that is free, in this order, none of the first lies higher than upon those that it lay above.
std::vector<uint32_t> orderOf(const RoundedItems &rounded, llvm::ArrayRef<uint64_t> offsets, llvm::ArrayRef<PackItem> items);

} // namespace shardc
