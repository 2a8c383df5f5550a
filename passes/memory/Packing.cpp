// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cmath>

using namespace llvm;

namespace shardc {
namespace {

struct Placed {
  uint64_t offset, end;
  uint64_t first, last;
};

/// Comparisons that all orders together may cost: about two seconds. A count, not a clock, so that
/// every machine finds the same result.
constexpr uint64_t kMaxWork = uint64_t(1) << 31;

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
    bool found = best_.height != UINT64_MAX;
    if (found && (best_.height <= best_.lowerBound || work_ > kMaxWork))
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

  /// Each item goes into the smallest gap that takes it, left by those that live with it.
  void place(ArrayRef<uint32_t> order) {
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
      if (height >= best_.height)
        return;
      auto at = llvm::upper_bound(placed, offset,
                                  [](uint64_t o, const Placed &p) { return o < p.offset; });
      placed.insert(at, {offset, offset + item.bytes, item.first, item.last});
      offsets[index] = offset;
    }
    best_.offsets = std::move(offsets);
    best_.height = height;
  }

  std::vector<PackItem> items_;
  PackResult best_;
  uint64_t work_ = 0;
};

} // namespace

PackResult pack(ArrayRef<PackItem> items, uint64_t alignment) {
  return Packer(items, alignment).run();
}

} // namespace shardc
