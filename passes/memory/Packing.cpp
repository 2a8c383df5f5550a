// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include "passes/memory/EvictionSearch.h"
#include "passes/memory/LocalSearch.h"
#include "passes/memory/PeakSearch.h"
#include "passes/memory/Rounding.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>
#include <tuple>

using namespace llvm;

namespace shardc {
namespace {

/// Of an attempt by eviction, for each item: most that find something have found it by then.
constexpr uint64_t kEvictionWork = 1 << 17;
/// Sizes may be rounded as long as what lives at a time changes by no more than one part in so many.
constexpr uint64_t kRounding = 256;

/// From the cheap to the dear, each only as long as what was found is not low enough.
class Packer {
public:
  /// Requires: sizes rounded up and above 0.
  Packer(ArrayRef<PackItem> items, uint64_t alignment, const PackLimits &limits)
      : items_(items), alignment_(alignment), limits_(limits), workLeft_(limits.work) {
    best_.lowerBound = peakOf(items);
    best_.height = UINT64_MAX;
    hasCapacity_ = limits.capacity >= best_.lowerBound; // else nothing can reach it, and we do what we can
    target_ = hasCapacity_ ? limits.capacity : best_.lowerBound;
    enough_ = hasCapacity_ ? target_ : target_ + limits.slack;
  }

  PackResult run() {
    greedy();
    if (hasCapacity_ && best_.height > enough_)
      searchAt(enough_, limits_.work / 2);
    if (best_.height > enough_)
      packRounded();
    if (best_.height > enough_)
      searchAt(enough_, limits_.work / 4);
    while (best_.height > enough_ && workLeft_)
      descend((best_.height - target_) / 2, kEvictionWork);
    lower();
    return std::move(best_);
  }

private:
  void keep(ArrayRef<uint64_t> offsets, uint64_t height, const char *method) {
    assert(height < best_.height);
    best_.offsets = offsets;
    best_.height = height;
    best_.method = method;
  }

  void greedy() {
    Placement placement(items_);
    for (GreedyOrder &order : greedyOrders(items_)) {
      bool first = best_.height == UINT64_MAX; // has to get to its end
      if (best_.height <= target_ || (!first && placement.work() > limits_.work / 2))
        break;
      placement.clear();
      if (!placement.putAll(order.items, order.fit, best_.height - 1, first ? UINT64_MAX / 2 : limits_.work / 8))
        continue;
      keep(placement.offsets(), placement.height(), order.name);
      order_ = std::move(order);
    }
    fromOrder_ = best_;
  }

  /// A packing of the rounded sizes says in what order the real ones lie above each other.
  void packRounded() {
    const RoundedItems rounded = roundSizes(items_, alignment_, best_.lowerBound / kRounding);
    if (!rounded.unit)
      return;
    Packer coarse(rounded.items, 1, {.slack = 0, .work = workLeft_});
    coarse.greedy();
    coarse.descend((coarse.best_.height - coarse.target_) / 2, kEvictionWork);
    workLeft_ = coarse.workLeft_;
    Placement placement(items_);
    if (placement.putAll(orderOf(rounded, coarse.best_.offsets, items_), Fit::Lowest, best_.height - 1, limits_.work / 8))
      keep(placement.offsets(), placement.height(), "rounded");
  }

  /// Lower by `step`, by half of it where that fails, and so on.
  void descend(uint64_t step, uint64_t work) {
    for (step = std::max(step, alignment_); step >= alignment_ && best_.height > enough_ && workLeft_;) {
      if (!evictTo(best_.height - step, work))
        step /= 2;
      step = std::min(step, best_.height - target_);
    }
  }

  /// What is good enough may be lower still for little work.
  void lower() {
    workLeft_ = std::min(limits_.work / 2, items_.size() << 18);
    if (best_.height <= target_ || searchAt(target_, std::min(limits_.work / 32, items_.size() << 17)))
      return;
    moves();
    const uint64_t work = std::max(kEvictionWork / 4, limits_.work / 64 / items_.size());
    enough_ = target_;
    for (unsigned pass = 0; pass < 4; ++pass) // what fails once may succeed the next time, or from the next packing
      descend(best_.height - target_, work);
  }

  void moves() {
    uint64_t height = fromOrder_.height;
    improveOrder(items_, order_, fromOrder_.offsets, height, target_, limits_.work / 32);
    if (height < best_.height)
      keep(fromOrder_.offsets, height, "local-search");
  }

  bool searchAt(uint64_t height, uint64_t work) {
    const SearchResult found = searchPeak(items_, height, std::min(work, workLeft_));
    if (found.verdict == SearchResult::Impossible)
      target_ = std::max(target_, height + alignment_);
    enough_ = std::max(enough_, target_);
    return keepFound(found, "search");
  }

  /// `work`: for each item.
  bool evictTo(uint64_t height, uint64_t work) {
    height = alignDown(height, alignment_);
    work = std::min(workLeft_, work * items_.size());
    return best_.height <= height ||
           keepFound(searchByEviction(items_, best_.offsets, height, attempts_++, work), "eviction");
  }

  bool keepFound(const SearchResult &found, const char *method) {
    workLeft_ -= std::min(found.work, workLeft_);
    if (found.verdict != SearchResult::Found)
      return false;
    uint64_t top = 0;
    for (auto [item, offset] : llvm::zip_equal(items_, found.offsets))
      top = std::max(top, offset + item.bytes);
    keep(found.offsets, top, method);
    return true;
  }

  ArrayRef<PackItem> items_;
  const uint64_t alignment_;
  PackLimits limits_;
  PackResult best_;
  PackResult fromOrder_; ///< the best of orders
  GreedyOrder order_;
  bool hasCapacity_ = false;
  uint64_t target_ = 0; ///< a height that is worth no more work
  uint64_t enough_ = 0; ///< a height that is worth little more
  uint64_t workLeft_;
  unsigned attempts_ = 0; ///< by eviction
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
    result = Packer(sized, alignment, limits).run();
  std::vector<uint64_t> offsets(items.size());
  for (auto [i, offset] : llvm::zip_equal(order, result.offsets))
    offsets[i] = offset;
  result.offsets = std::move(offsets);
  return result;
}

} // namespace shardc
