// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/LocalSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

constexpr unsigned kRounds = 300;

bool liveTogether(const PackItem &a, const PackItem &b) {
  return a.first < b.last && b.first < a.last;
}

} // namespace

void improveOrder(ArrayRef<PackItem> items, GreedyOrder &order, std::vector<uint64_t> &offsets,
                  uint64_t &height, uint64_t enough, uint64_t work) {
  std::mt19937 random(1);
  Placement placement(items);
  for (unsigned round = 0; round < kRounds && height > enough && placement.work() < work; ++round) {
    std::vector<uint32_t> next = order.items, candidates;
    llvm::copy_if(next, std::back_inserter(candidates),
                  [&](uint32_t i) { return offsets[i] + items[i].bytes == height; });
    uint32_t moved = candidates[random() % candidates.size()];
    if (round % 2) {
      candidates.clear();
      llvm::copy_if(next, std::back_inserter(candidates),
                    [&](uint32_t i) { return liveTogether(items[i], items[moved]); });
      moved = candidates[random() % candidates.size()];
    }
    auto at = llvm::find(next, moved);
    std::rotate(next.begin() + random() % (at - next.begin() + 1), at, at + 1);
    placement.clear();
    if (!placement.putAll(next, order.fit, height, work - std::min(work, placement.work())))
      continue;
    order.items = std::move(next);
    offsets = placement.offsets();
    height = placement.height();
  }
}

} // namespace shardc
