// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include "passes/memory/LocalSearch.h"
#include "passes/memory/PeakSearch.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>
#include <tuple>

using namespace llvm;

namespace shardc {
namespace {

/// From the cheap to the dear, each only as long as what was found is not low enough.
class Packer {
public:
  /// Requires: sizes rounded up and above 0.
  Packer(ArrayRef<PackItem> items, const PackLimits &limits)
      : items_(items), limits_(limits), workLeft_(limits.work) {
    best_.lowerBound = peakOf(items);
    best_.height = UINT64_MAX;
    hasCapacity_ =
        limits.capacity >= best_.lowerBound; // else nothing can reach it, and we do what we can
    target_ = hasCapacity_ ? limits.capacity : best_.lowerBound;
  }

  PackResult run() {
    GreedyOrder order = greedy();
    uint64_t firstWork = hasCapacity_ ? limits_.work : limits_.work / 4;
    bool found = best_.height > within(limits_.slack) && searchAt(target_, firstWork);
    if (!found)
      moves(std::move(order));
    search();
    return std::move(best_);
  }

private:
  /// A height that is worth no more work.
  uint64_t within(uint64_t slack) const { return hasCapacity_ ? target_ : target_ + slack; }

  void keep(ArrayRef<uint64_t> offsets, uint64_t height, const char *method) {
    assert(height < best_.height);
    best_.offsets = offsets;
    best_.height = height;
    best_.method = method;
  }

  /// Returns the best order.
  GreedyOrder greedy() {
    Placement placement(items_);
    GreedyOrder best;
    for (GreedyOrder &order : greedyOrders(items_)) {
      bool first = best_.height == UINT64_MAX; // has to get to its end
      if (best_.height <= target_ || (!first && placement.work() > limits_.work / 2))
        break;
      placement.clear();
      if (!placement.putAll(order.items, order.fit, best_.height - 1,
                            first ? UINT64_MAX / 2 : limits_.work / 8))
        continue;
      keep(placement.offsets(), placement.height(), order.name);
      best = std::move(order);
    }
    return best;
  }

  void moves(GreedyOrder order) {
    uint64_t height = best_.height;
    std::vector<uint64_t> offsets = best_.offsets;
    improveOrder(items_, order, offsets, height, within(best_.lowerBound / 2048), limits_.work / 4);
    if (height < best_.height)
      keep(offsets, height, "local-search");
  }

  /// Where what is wanted was not found: is there something that is good enough, or in the middle
  /// of what was not found and what was?
  void search() {
    uint64_t slack = std::max(best_.lowerBound / 1024, limits_.slack);
    uint64_t low = target_, next = within(slack);
    while (best_.height > within(slack) && workLeft_ && best_.height > low + slack / 2) {
      if (!searchAt(next, limits_.work / 4))
        low = next;
      next = low + (best_.height - low) / 2;
    }
  }

  bool searchAt(uint64_t height, uint64_t work) {
    SearchResult found = searchPeak(items_, height, std::min(work, workLeft_));
    workLeft_ -= found.work;
    if (found.verdict != SearchResult::Found)
      return false;
    uint64_t top = 0;
    for (auto [item, offset] : llvm::zip_equal(items_, found.offsets))
      top = std::max(top, offset + item.bytes);
    keep(found.offsets, top, "search");
    return true;
  }

  ArrayRef<PackItem> items_;
  PackLimits limits_;
  PackResult best_;
  bool hasCapacity_ = false;
  uint64_t target_ = 0, workLeft_;
};

} // namespace

PackResult pack(ArrayRef<PackItem> items, uint64_t alignment, const PackLimits &limits) {
  std::vector<uint32_t> order; // so that the order in which items are given says nothing
  for (uint32_t i = 0; i < items.size(); ++i) {
    assert(items[i].first < items[i].last);
    if (items[i].bytes)
      order.push_back(i);
  }
  auto key = [&](uint32_t i) { return std::tuple(items[i].first, items[i].last, items[i].bytes); };
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  std::vector<PackItem> sized;
  for (uint32_t i : order)
    sized.push_back({alignTo(items[i].bytes, alignment), items[i].first, items[i].last});
  PackResult result;
  if (!sized.empty())
    result = Packer(sized, limits).run();
  std::vector<uint64_t> offsets(items.size());
  for (auto [i, offset] : llvm::zip_equal(order, result.offsets))
    offsets[i] = offset;
  result.offsets = std::move(offsets);
  return result;
}

} // namespace shardc
