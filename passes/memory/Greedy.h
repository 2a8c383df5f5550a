// SPDX-License-Identifier: Apache-2.0
// One item after another, in several orders: the lowest result is nearly always at the bound for a
// training step.
#pragma once

#include "passes/memory/Placement.h"

namespace shardc {

/// An order of all items, and how each finds its place.
struct GreedyOrder {
  const char *name;
  Fit fit;
  std::vector<uint32_t> items;
};

/// The portfolio: by life, size, size times the root of the life, area, begin and end, each with
/// both fits. The first is cheap for any problem: what lives long comes first and leaves no holes.
/// No order of them is safe alone. Items that are equal in it stand by size, then begin, then
/// index. The strings live forever.
std::vector<GreedyOrder> greedyOrders(llvm::ArrayRef<PackItem> items);

} // namespace shardc
