// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cmath>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

struct Placed {
  uint64_t offset, end;
  uint64_t first, last;
};

/// Comparisons that all orders together may cost: about half a second. A count, not a clock, so
/// that every machine finds the same result.
constexpr uint64_t kMaxWork = uint64_t(1) << 28;
constexpr unsigned kMaxRounds = 300;
/// One part in so many above the bound is not worth more work.
constexpr uint64_t kGoodEnough = 2000;

class Packer {
public:
  Packer(ArrayRef<PackItem> items, uint64_t alignment) : items_(items) {
    for (PackItem &item : items_) {
      assert(item.first < item.last);
      item.bytes = alignTo(item.bytes, alignment);
    }
    best_.offsets.assign(items_.size(), 0);
    best_.lowerBound = lowerBound();
    best_.height = UINT64_MAX;
  }

  PackResult run() {
    auto life = [](const PackItem &i) { return double(i.last - i.first); };
    // Size first is nearly always optimal for a training step, but no single order is safe.
    tryOrder([&](const PackItem &i) { return double(i.bytes); });
    tryOrder([&](const PackItem &i) { return double(i.bytes) * std::sqrt(life(i)); });
    tryOrder([&](const PackItem &i) { return double(i.bytes) * life(i); });
    tryOrder([&](const PackItem &i) { return life(i); });
    tryOrder([&](const PackItem &i) { return -double(i.first); });
    tryOrder([&](const PackItem &i) { return double(i.last); });
    if (best_.height == UINT64_MAX) // nothing to place
      best_.height = 0;
    improve();
    return std::move(best_);
  }

private:
  uint64_t lowerBound() const {
    std::vector<std::pair<uint64_t, int64_t>> changes; // time, bytes; ends sort before begins
    for (const PackItem &item : items_) {
      changes.push_back({item.first, int64_t(item.bytes)});
      changes.push_back({item.last, -int64_t(item.bytes)});
    }
    llvm::sort(changes);
    int64_t live = 0, most = 0;
    for (auto [time, bytes] : changes)
      most = std::max(most, live += bytes);
    return uint64_t(most);
  }

  template <typename Key> void tryOrder(Key key) {
    if (done())
      return;
    std::vector<double> keys(items_.size());
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < items_.size(); ++i) {
      keys[i] = key(items_[i]);
      if (items_[i].bytes)
        order.push_back(i);
    }
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
      if (keys[a] != keys[b])
        return keys[a] > keys[b];
      if (items_[a].bytes != items_[b].bytes)
        return items_[a].bytes > items_[b].bytes;
      return items_[a].first < items_[b].first;
    });
    place(order);
  }

  /// Who sticks out at the top was placed too late: it, or an item that lives with it, goes to the
  /// front. Repeated with the best order so far; a fixed sequence of random numbers, so that all
  /// runs agree.
  void improve() {
    std::mt19937 random(1);
    for (unsigned round = 0; round < kMaxRounds && !done(); ++round) {
      if (best_.height - best_.lowerBound <= best_.lowerBound / kGoodEnough)
        return;
      std::vector<uint32_t> order = bestOrder_;
      std::vector<uint32_t> top;
      for (uint32_t i : order)
        if (best_.offsets[i] + items_[i].bytes == best_.height)
          top.push_back(i);
      uint32_t moved = top[random() % top.size()];
      if (round % 2) {
        std::vector<uint32_t> neighbours;
        for (uint32_t i : order)
          if (items_[i].first < items_[moved].last && items_[moved].first < items_[i].last)
            neighbours.push_back(i);
        moved = neighbours[random() % neighbours.size()];
      }
      auto at = llvm::find(order, moved);
      auto to = order.begin() + random() % (at - order.begin() + 1);
      std::rotate(to, at, at + 1);
      place(order);
    }
  }

  bool done() const {
    bool found = best_.height != UINT64_MAX;
    return items_.empty() || (found && (best_.height <= best_.lowerBound || work_ > kMaxWork));
  }

  /// Each item goes into the smallest gap that takes it, left by those that live with it. Keeps the
  /// result if it is not higher than the best one.
  void place(const std::vector<uint32_t> &order) {
    std::vector<Placed> placed; // by offset
    placed.reserve(order.size());
    std::vector<uint64_t> offsets(items_.size(), 0);
    uint64_t height = 0;
    for (uint32_t index : order) {
      const PackItem &item = items_[index];
      uint64_t top = 0, bestGap = UINT64_MAX, bestOffset = 0;
      for (const Placed &p : placed) {
        if (p.first >= item.last || item.first >= p.last)
          continue;
        if (p.offset > top && p.offset - top >= item.bytes && p.offset - top < bestGap) {
          bestGap = p.offset - top;
          bestOffset = top;
        }
        top = std::max(top, p.end);
      }
      work_ += placed.size();
      uint64_t offset = bestGap != UINT64_MAX ? bestOffset : top;
      height = std::max(height, offset + item.bytes);
      if (height > best_.height)
        return;
      auto at = llvm::upper_bound(placed, offset,
                                  [](uint64_t o, const Placed &p) { return o < p.offset; });
      placed.insert(at, {offset, offset + item.bytes, item.first, item.last});
      offsets[index] = offset;
    }
    best_.offsets = std::move(offsets);
    best_.height = height;
    bestOrder_ = order;
  }

  std::vector<PackItem> items_;
  PackResult best_;
  std::vector<uint32_t> bestOrder_;
  uint64_t work_ = 0;
};

} // namespace

PackResult pack(ArrayRef<PackItem> items, uint64_t alignment) {
  return Packer(items, alignment).run();
}

} // namespace shardc
