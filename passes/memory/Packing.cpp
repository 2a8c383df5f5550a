// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cmath>
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

struct Placed {
  int64_t offset, end;
  int64_t first, last;
};

/// Comparisons that all orders together may cost: about two seconds. A count, not a clock, so that
/// every machine finds the same solution.
constexpr int64_t kMaxWork = int64_t(1) << 31;

class Packer {
public:
  explicit Packer(const PackProblem &problem) : items_(problem.items) {
    for (PackItem &item : items_) {
      assert(item.size >= 0 && item.first < item.last);
      item.size = int64_t(alignTo(uint64_t(item.size), uint64_t(problem.alignment)));
    }
    best_.offsets.assign(items_.size(), 0);
    best_.lowerBound = packLowerBound(problem);
    best_.height = INT64_MAX;
  }

  PackSolution run() {
    auto life = [](const PackItem &i) { return double(i.last - i.first); };
    // Size first is nearly always optimal for a training step; no single order is safe.
    tryOrder([&](const PackItem &i) { return double(i.size); });
    tryOrder([&](const PackItem &i) { return double(i.size) * std::sqrt(life(i)); });
    tryOrder([&](const PackItem &i) { return double(i.size) * life(i); });
    tryOrder([&](const PackItem &i) { return life(i); });
    tryOrder([&](const PackItem &i) { return -double(i.first); });
    tryOrder([&](const PackItem &i) { return double(i.last); });
    if (best_.height == INT64_MAX)
      best_.height = 0;
    return std::move(best_);
  }

private:
  template <typename Key> void tryOrder(Key key) {
    if (best_.height <= best_.lowerBound || (work_ > kMaxWork && best_.height != INT64_MAX))
      return;
    std::vector<double> keys(items_.size());
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < items_.size(); ++i) {
      keys[i] = key(items_[i]);
      if (items_[i].size)
        order.push_back(i);
    }
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
      if (keys[a] != keys[b])
        return keys[a] > keys[b];
      if (items_[a].size != items_[b].size)
        return items_[a].size > items_[b].size;
      return items_[a].first < items_[b].first;
    });
    place(order);
  }

  /// Each item goes into the smallest gap that takes it, left by those that live with it.
  void place(const std::vector<uint32_t> &order) {
    std::vector<Placed> placed; // by offset
    placed.reserve(order.size());
    std::vector<int64_t> offsets(items_.size(), 0);
    int64_t height = 0;
    for (uint32_t index : order) {
      const PackItem &item = items_[index];
      int64_t top = 0, bestGap = INT64_MAX, bestOffset = -1;
      for (const Placed &p : placed) {
        if (p.first >= item.last || item.first >= p.last)
          continue;
        int64_t gap = p.offset - top;
        if (gap >= item.size && gap < bestGap) {
          bestGap = gap;
          bestOffset = top;
        }
        top = std::max(top, p.end);
      }
      work_ += int64_t(placed.size());
      int64_t offset = bestOffset >= 0 ? bestOffset : top;
      height = std::max(height, offset + item.size);
      if (height >= best_.height)
        return;
      auto at = llvm::upper_bound(placed, offset,
                                  [](int64_t o, const Placed &p) { return o < p.offset; });
      placed.insert(at, {offset, offset + item.size, item.first, item.last});
      offsets[index] = offset;
    }
    best_.offsets = std::move(offsets);
    best_.height = height;
  }

  std::vector<PackItem> items_;
  PackSolution best_;
  int64_t work_ = 0;
};

} // namespace

int64_t packLowerBound(const PackProblem &problem) {
  std::vector<std::pair<int64_t, int64_t>> changes; // time, bytes; ends sort before begins
  for (const PackItem &item : problem.items) {
    int64_t size = int64_t(alignTo(uint64_t(item.size), uint64_t(problem.alignment)));
    changes.push_back({item.first, size});
    changes.push_back({item.last, -size});
  }
  llvm::sort(changes);
  int64_t live = 0, most = 0;
  for (auto [time, bytes] : changes)
    most = std::max(most, live += bytes);
  return most;
}

PackSolution pack(const PackProblem &problem) { return Packer(problem).run(); }

} // namespace shardc
