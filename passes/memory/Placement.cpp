// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Placement.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;

namespace shardc {

/// What a node and a range take, sorting included, where the search looks at one item in about a
/// nanosecond.
static constexpr uint64_t kNodeWork = 16, kRangeWork = 32;

void Ranges::add(uint64_t begin, uint64_t end) {
  auto first =
      llvm::partition_point(ranges_, [&](const auto &range) { return range.second < begin; });
  auto last = first;
  for (; last != ranges_.end() && last->first <= end; ++last) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->second);
  }
  if (first == last) {
    ranges_.insert(first, {begin, end});
    return;
  }
  *first = {begin, end};
  ranges_.erase(first + 1, last);
}

Placement::Placement(ArrayRef<PackItem> items)
    : items_(items), sections_(items),
      leaves_(uint32_t(PowerOf2Ceil(std::max<size_t>(sections_.size(), 1)))),
      offsets_(items.size()) {
  nodes_.resize(2 * size_t(leaves_));
}

void Placement::clear() {
  for (Node &node : nodes_) {
    node.over.clear();
    node.within.clear();
  }
  std::fill(offsets_.begin(), offsets_.end(), 0);
  height_ = 0;
  work_ += kNodeWork * nodes_.size();
}

void Placement::put(uint32_t item, uint64_t offset) {
  uint64_t end = offset + items_[item].bytes;
  put(1, {0, leaves_}, {sections_.begin[item], sections_.end[item]}, offset, end);
  offsets_[item] = offset;
  height_ = std::max(height_, end);
}

void Placement::put(size_t node, Span span, Span life, uint64_t begin, uint64_t end) {
  if (span.end <= life.begin || life.end <= span.begin)
    return;
  work_ += kNodeWork;
  nodes_[node].within.add(begin, end);
  if (life.begin <= span.begin && span.end <= life.end) {
    nodes_[node].over.add(begin, end);
    return;
  }
  uint32_t middle = (span.begin + span.end) / 2;
  put(2 * node, {span.begin, middle}, life, begin, end);
  put(2 * node + 1, {middle, span.end}, life, begin, end);
}

void Placement::collect(size_t node, Span span, Span life) {
  if (span.end <= life.begin || life.end <= span.begin)
    return;
  work_ += kNodeWork;
  bool inside = life.begin <= span.begin && span.end <= life.end;
  auto ranges = inside ? nodes_[node].within.all() : nodes_[node].over.all();
  taken_.insert(taken_.end(), ranges.begin(), ranges.end());
  if (inside)
    return;
  uint32_t middle = (span.begin + span.end) / 2;
  collect(2 * node, {span.begin, middle}, life);
  collect(2 * node + 1, {middle, span.end}, life);
}

uint64_t Placement::find(uint32_t item, Fit fit) {
  taken_.clear();
  collect(1, {0, leaves_}, {sections_.begin[item], sections_.end[item]});
  work_ += kRangeWork * taken_.size();
  llvm::sort(taken_);
  uint64_t bytes = items_[item].bytes, top = 0, smallest = UINT64_MAX, place = 0;
  for (auto [begin, end] : taken_) {
    uint64_t gap = begin > top ? begin - top : 0;
    if (gap >= bytes && gap < smallest) {
      smallest = gap;
      place = top;
      if (fit == Fit::Lowest)
        return place;
    }
    top = std::max(top, end);
  }
  return smallest != UINT64_MAX ? place : top;
}

bool Placement::putAll(ArrayRef<uint32_t> order, Fit fit, uint64_t most, uint64_t work) {
  uint64_t end = work_ + work;
  for (uint32_t item : order) {
    put(item, find(item, fit));
    if (height_ > most || work_ > end)
      return false;
  }
  return true;
}

} // namespace shardc
