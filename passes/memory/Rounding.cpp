// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Rounding.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

uint64_t unitsOf(uint64_t bytes, uint64_t unit) { return (bytes + unit / 2) / unit; }

/// The peak, were what rounding changes there beside the items.
uint64_t peakWithChanges(ArrayRef<PackItem> items, uint64_t unit) {
  std::vector<PackItem> changed(items);
  for (PackItem &item : changed)
    item.bytes += AbsoluteDifference(item.bytes, unitsOf(item.bytes, unit) * unit);
  return peakOf(changed);
}

} // namespace

RoundedItems roundSizes(ArrayRef<PackItem> items, uint64_t alignment, uint64_t most) {
  RoundedItems result;
  const uint64_t peak = peakOf(items);
  uint64_t unit = PowerOf2Ceil(peak);
  while (unit > alignment && peakWithChanges(items, unit) - peak > most)
    unit /= 2;
  if (unit <= alignment)
    return result;
  result.unit = unit;
  for (auto [i, item] : llvm::enumerate(items))
    if (const uint64_t units = unitsOf(item.bytes, unit)) {
      result.items.push_back({units, item.first, item.last});
      result.original.push_back(uint32_t(i));
    }
  return result;
}

std::vector<uint32_t> orderOf(const RoundedItems &rounded, ArrayRef<uint64_t> offsets, ArrayRef<PackItem> items) {
  constexpr uint64_t kLeftOut = UINT64_MAX;
  std::vector<uint64_t> at(items.size(), kLeftOut);
  for (auto [item, offset] : llvm::zip_equal(rounded.original, offsets))
    at[item] = offset;
  auto area = [&](uint32_t i) { return double(items[i].bytes) * double(items[i].last - items[i].first); };
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return at[a] != at[b] ? at[a] < at[b] : at[a] == kLeftOut && area(a) > area(b);
  });
  return order;
}

} // namespace shardc
