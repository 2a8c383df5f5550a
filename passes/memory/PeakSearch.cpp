// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/PeakSearch.h"
#include "passes/memory/Greedy.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;

namespace shardc {
namespace {

constexpr size_t kMaxItems = 4096;
/// A first dive to the bottom and a little more, for each pair of items.
constexpr uint64_t kWorkPerPair = 64;
/// A window belongs to the peak where more than so many percent of it live.
constexpr uint64_t kShares[] = {95, 80, 70, 50, 30, 0};

struct Window {
  std::vector<uint32_t> inside, outside; // indices of items
};

Window windowOf(ArrayRef<PackItem> items, const Sections &sections, uint64_t share) {
  uint64_t peak = *std::max_element(sections.bytes.begin(), sections.bytes.end());
  std::vector<uint32_t> before(1); // by section: how many below it are in the window
  for (uint64_t bytes : sections.bytes)
    before.push_back(before.back() + (bytes * 100 > peak * share));
  Window window;
  for (uint32_t i = 0; i < items.size(); ++i)
    (before[sections.end[i]] > before[sections.begin[i]] ? window.inside : window.outside)
        .push_back(i);
  return window;
}

/// From the narrowest to the widest. One that has nearly all items of the next says nothing new.
std::vector<Window> windowsOf(ArrayRef<PackItem> items) {
  Sections sections(items);
  std::vector<Window> windows;
  for (uint64_t share : kShares) {
    Window window = windowOf(items, sections, share);
    if (window.inside.size() > kMaxItems)
      break;
    if (!windows.empty() && windows.back().inside.size() * 10 > window.inside.size() * 9)
      windows.pop_back();
    windows.push_back(std::move(window));
  }
  return windows;
}

/// Puts what is outside around what is inside.
bool complete(Placement &placement, ArrayRef<PackItem> items, ArrayRef<GreedyOrder> orders,
              const Window &window, ArrayRef<uint64_t> offsets, uint64_t capacity, uint64_t work) {
  uint64_t end = placement.work() + work;
  std::vector<char> isInside(items.size());
  for (uint32_t i : window.inside)
    isInside[i] = true;
  for (const GreedyOrder &order : orders) {
    if (placement.work() >= end)
      return false;
    placement.clear();
    for (auto [i, offset] : llvm::zip_equal(window.inside, offsets))
      placement.put(i, offset);
    std::vector<uint32_t> rest;
    llvm::copy_if(order.items, std::back_inserter(rest), [&](uint32_t i) { return !isInside[i]; });
    if (placement.putAll(rest, order.fit, capacity, end - std::min(end, placement.work())))
      return true;
  }
  return false;
}

} // namespace

SearchResult searchPeak(ArrayRef<PackItem> items, uint64_t capacity, uint64_t work) {
  struct Attempt {
    const Window &window;
    std::vector<PackItem> items;
    Preference preference;
    uint64_t work;
    bool done = false;
  };
  std::vector<Window> windows = windowsOf(items);
  std::vector<Attempt> attempts;
  for (const Window &window : windows)
    for (Preference preference :
         {Preference::WidthAreaTotal, Preference::TotalAreaWidth, Preference::TotalWidthArea}) {
      std::vector<PackItem> inside;
      for (uint32_t i : window.inside)
        inside.push_back(items[i]);
      uint64_t n = inside.size();
      attempts.push_back({window, std::move(inside), preference, kWorkPerPair * n * n});
    }
  Placement placement(items);
  std::vector<GreedyOrder> orders; // made when they are needed: sorting is not free
  SearchResult result;
  while (result.work < work && !llvm::all_of(attempts, [](const Attempt &a) { return a.done; }))
    for (Attempt &attempt : attempts) {
      if (attempt.done || result.work >= work)
        continue;
      SearchResult found = searchCanonical(attempt.items, capacity, attempt.preference,
                                           std::min(attempt.work, work - result.work));
      result.work += found.work;
      attempt.work *= 2;
      if (found.verdict == SearchResult::Found) {
        attempt.done = true; // it would find the same again
        if (orders.empty())
          orders = greedyOrders(items);
        uint64_t before = placement.work();
        bool fits = complete(placement, items, orders, attempt.window, found.offsets, capacity,
                             work - result.work);
        result.work = std::min(work, result.work + placement.work() - before);
        result.offsets = placement.offsets();
        if (!fits)
          continue;
      }
      if (found.verdict != SearchResult::OutOfWork) {
        result.verdict = found.verdict;
        return result;
      }
    }
  return result;
}

} // namespace shardc
