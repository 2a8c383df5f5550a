// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/CanonicalSearch.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <array>
#include <numeric>

using namespace llvm;

namespace shardc {
namespace {

using Items = std::vector<uint32_t>;

class Search {
public:
  Search(ArrayRef<PackItem> items, uint64_t capacity, Preference preference, uint64_t work)
      : items_(items), sections_(items), capacity_(capacity), preference_(preference),
        workLeft_(work), limit_(work), lowest_(items.size()), open_(items.size()),
        rank_(items.size()), remaining_(sections_.bytes), floor_(sections_.size()),
        touched_(sections_.size()), leftFloor_(sections_.size()), membersOf_(sections_.size()) {
    for (uint32_t i = 0; i < items.size(); ++i)
      for (uint32_t s = sections_.begin[i]; s < sections_.end[i]; ++s)
        membersOf_[s].push_back(i);
  }

  SearchResult run() {
    Items all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    llvm::stable_sort(all,
                      [&](uint32_t a, uint32_t b) { return items_[a].first < items_[b].first; });
    bool found = placeParts(std::move(all), 0, kNone);
    SearchResult result;
    result.work = limit_ - workLeft_;
    result.verdict = found        ? SearchResult::Found
                     : outOfWork_ ? SearchResult::OutOfWork
                                  : SearchResult::Impossible;
    if (found)
      result.offsets = std::move(lowest_);
    return result;
  }

private:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Says whether there is work left for looking at so many items.
  bool spend(uint64_t work) {
    outOfWork_ |= work > workLeft_;
    workLeft_ -= std::min(work, workLeft_);
    return !outOfWork_;
  }

  /// Items that no other ties to the rest in time can be placed for themselves: where they fail, no
  /// change of the rest helps. `items` are not placed and sorted by their begin, all next ones lie
  /// at `offset` or above, after `previous`.
  bool placeParts(Items items, uint64_t offset, uint32_t previous) {
    if (items.empty())
      return true;
    std::vector<Items> parts;
    uint64_t end = 0;
    for (uint32_t i : items) {
      if (parts.empty() || items_[i].first >= end)
        parts.emplace_back();
      parts.back().push_back(i);
      end = std::max(end, items_[i].last);
    }
    if (parts.size() == 1 && previous != kNone)
      return placeOne(items, offset, previous);
    llvm::stable_sort(parts, [](const Items &a, const Items &b) { return a.size() < b.size(); });
    std::vector<uint32_t> saved = rank_;
    bool placed = llvm::all_of(parts, [&](const Items &part) {
      rankItems(part);
      return placeOne(part, 0, kNone);
    });
    rank_ = std::move(saved);
    return placed;
  }

  void rankItems(const Items &part) {
    std::vector<std::pair<std::array<uint64_t, 3>, uint32_t>> keys;
    for (uint32_t i : part) {
      uint64_t width = items_[i].last - items_[i].first, area = width * items_[i].bytes, total = 0;
      for (uint32_t s = sections_.begin[i]; s < sections_.end[i]; ++s)
        total = std::max(total, remaining_[s]);
      spend(sections_.end[i] - sections_.begin[i]);
      if (preference_ == Preference::WidthAreaTotal)
        keys.push_back({{width, area, total}, i});
      else if (preference_ == Preference::TotalAreaWidth)
        keys.push_back({{total, area, width}, i});
      else
        keys.push_back({{total, width, area}, i});
    }
    llvm::sort(keys, [](const auto &a, const auto &b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (uint32_t k = 0; k < keys.size(); ++k)
      rank_[keys[k].second] = k;
  }

  bool placeOne(const Items &part, uint64_t offset, uint32_t previous) {
    if (!spend(part.size()))
      return false;
    // Whatever lies at the lowest end that is still possible, or higher, leaves a hole that this
    // item fits into.
    uint64_t lowestEnd = UINT64_MAX;
    uint32_t from = UINT32_MAX, to = 0;
    for (uint32_t i : part) {
      lowestEnd = std::min(lowestEnd, lowest_[i] + items_[i].bytes);
      from = std::min(from, sections_.begin[i]);
      to = std::max(to, sections_.end[i]);
    }
    for (uint32_t i : part)
      if (lowest_[i] < offset && !canBeLifted(i, part, offset))
        return false;
    Items candidates;
    for (uint32_t i : part)
      if (lowest_[i] < lowestEnd && lowest_[i] >= offset &&
          !(previous != kNone && lowest_[i] == offset && rank_[i] < rank_[previous]))
        candidates.push_back(i);
    llvm::sort(candidates, [&](uint32_t a, uint32_t b) {
      return lowest_[a] != lowest_[b] ? lowest_[a] < lowest_[b] : rank_[a] < rank_[b];
    });
    for (uint32_t i : candidates) {
      size_t mark = trail_.size();
      bool alone = true; // nothing is still to come above it
      bool fits = place(i, part, from, to, alone);
      if (fits) {
        Items rest;
        rest.reserve(part.size() - 1);
        llvm::copy_if(part, std::back_inserter(rest), [&](uint32_t j) { return j != i; });
        if (placeParts(std::move(rest), lowest_[i], i))
          return true;
      }
      undo(mark);
      if (outOfWork_ || (alone && fits)) // it is in nobody's way: the others failed without it
        return false;
    }
    return false;
  }

  bool canBeLifted(uint32_t item, const Items &part, uint64_t offset) {
    uint64_t least = UINT64_MAX, end = lowest_[item] + items_[item].bytes;
    spend(part.size());
    for (uint32_t other : part) {
      if (items_[other].first >= items_[item].last)
        break;
      if (other == item || items_[other].last <= items_[item].first)
        continue;
      uint64_t at = std::max(lowest_[other], offset);
      if (at < end)
        least = std::min(least, at + items_[other].bytes);
    }
    return least != UINT64_MAX && least + items_[item].bytes <= capacity_;
  }

  /// Puts an item at its lowest offset; says whether the rest of its part may still fit.
  bool place(uint32_t item, const Items &part, uint32_t from, uint32_t to, bool &alone) {
    uint64_t offset = lowest_[item], end = offset + items_[item].bytes;
    if (end > capacity_)
      return false;
    open_[item] = UINT64_MAX;
    trail_.push_back({Change::Placed, item, 0});
    for (uint32_t s = sections_.begin[item]; s < sections_.end[item]; ++s)
      remaining_[s] -= items_[item].bytes;
    ++mark_;
    changed_.clear();
    touch(item, offset);
    for (uint32_t other : part) {
      if (items_[other].first >= items_[item].last)
        break;
      if (other == item || items_[other].last <= items_[item].first)
        continue;
      alone = false;
      if (lowest_[other] >= end)
        continue;
      trail_.push_back({Change::Lowest, other, lowest_[other]});
      touch(other, lowest_[other]);
      lowest_[other] = open_[other] = end;
      if (end + items_[other].bytes > capacity_)
        return false;
    }
    if (!spend(part.size() + (to - from)))
      return false;
    for (uint32_t s : changed_) {
      spend(membersOf_[s].size());
      if (!remaining_[s] || !leftFloor_[s])
        continue;
      const uint64_t floor = lowestIn(s);
      if (floor > floor_[s]) {
        trail_.push_back({Change::Floor, s, floor_[s]});
        floor_[s] = floor;
      }
    }
    for (uint32_t s = from; s < to; ++s)
      if (remaining_[s] && std::max(floor_[s], offset) + remaining_[s] > capacity_)
        return false;
    return true;
  }

  /// `item` was at `lowest` until now.
  void touch(uint32_t item, uint64_t lowest) {
    for (uint32_t s = sections_.begin[item]; s < sections_.end[item]; ++s) {
      if (touched_[s] != mark_) {
        touched_[s] = mark_;
        leftFloor_[s] = false;
        changed_.push_back(s);
      }
      leftFloor_[s] |= lowest <= floor_[s];
    }
  }

  /// Where the first of those that are still to be placed can begin; floor_[s] as soon as one is found there.
  uint64_t lowestIn(uint32_t s) const {
    uint64_t lowest = UINT64_MAX;
    for (uint32_t item : membersOf_[s]) {
      lowest = std::min(lowest, open_[item]);
      if (lowest <= floor_[s])
        break;
    }
    return lowest;
  }

  void undo(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) {
      const Change &change = trail_.back();
      switch (change.kind) {
      case Change::Lowest:
        lowest_[change.index] = open_[change.index] = change.old;
        break;
      case Change::Floor:
        floor_[change.index] = change.old;
        break;
      case Change::Placed:
        open_[change.index] = lowest_[change.index];
        for (uint32_t s = sections_.begin[change.index]; s < sections_.end[change.index]; ++s)
          remaining_[s] += items_[change.index].bytes;
        break;
      }
    }
  }

  struct Change {
    enum Kind { Lowest, Floor, Placed } kind;
    uint32_t index;
    uint64_t old;
  };

  ArrayRef<PackItem> items_;
  const Sections sections_;
  uint64_t capacity_;
  Preference preference_;
  uint64_t workLeft_, limit_;
  bool outOfWork_ = false;
  std::vector<uint64_t>
      lowest_; // by item: where it lies, or the lowest place that the placed ones leave it
  std::vector<uint64_t> open_; // the same where it is still to be placed, else UINT64_MAX
  std::vector<uint32_t> rank_;      // by item, in its part
  std::vector<uint64_t> remaining_; // by section: bytes still to be placed
  std::vector<uint64_t> floor_;     // by section: where the first of them can begin
  std::vector<uint64_t> touched_;   // by section: the last mark_ that changed something there
  std::vector<char> leftFloor_;     // by section that was touched: an item that was at the floor
  std::vector<Items> membersOf_;
  std::vector<Change> trail_;
  Items changed_;
  uint64_t mark_ = 0;
};

} // namespace

SearchResult searchCanonical(ArrayRef<PackItem> items, uint64_t capacity, Preference preference,
                             uint64_t work) {
  return Search(items, capacity, preference, work).run();
}

} // namespace shardc
