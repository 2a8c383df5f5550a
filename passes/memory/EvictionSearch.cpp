// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/EvictionSearch.h"
#include "passes/memory/Sections.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

/// An item is at most so heavy at first. When one has grown to the second, all are divided by the third.
constexpr uint64_t kFirstWeight = 1 << 20, kMostWeight = uint64_t(1) << 40, kForget = 1 << 10;
/// What an item that stays weighs more: than all others, but so that sums do not overflow.
constexpr uint64_t kStays = uint64_t(1) << 54;
constexpr unsigned kSteps = 3; ///< it stays for fewer
/// An item that is driven out grows by one part in so many.
constexpr uint64_t kGrowth = 10;
/// What an item that is looked at takes, in the unit of work.
constexpr uint64_t kItemWork = 3;

/// Where a placed item begins or ends. Times are sections.
struct Edge {
  uint64_t at;
  uint32_t first, last, item;
  bool operator<(const Edge &other) const { return at != other.at ? at < other.at : item < other.item; }
};

using Edges = std::vector<Edge>; ///< in order

/// Those that live together with one item, in order: the first so many of a vector that never changes its size.
struct Beside {
  explicit Beside(size_t most) : edges(most) {}
  const Edge *begin() const { return edges.data(); }
  const Edge *end() const { return edges.data() + count; }

  Edges edges;
  size_t count = 0;
};

class Search {
public:
  Search(ArrayRef<PackItem> items, ArrayRef<uint64_t> offsets, uint64_t capacity, unsigned attempt)
      : items_(items), sections_(items), capacity_(capacity), offsets_(offsets), staysUntil_(items.size()),
        besideBegins_(items.size()), besideEnds_(items.size()), random_(attempt + 1) {
    setWeights(attempt);
    for (uint32_t i = 0; i < items.size(); ++i) {
      const uint64_t end = offsets[i] + items[i].bytes;
      if (end > capacity) {
        homeless_.push_back(i);
        continue;
      }
      begins_.push_back(edge(i, offsets[i]));
      ends_.push_back(edge(i, end));
    }
    llvm::sort(begins_);
    llvm::sort(ends_);
  }

  SearchResult run(uint64_t work) {
    while (!homeless_.empty() && work_ < work)
      step();
    SearchResult result;
    result.work = work_;
    if (homeless_.empty()) {
      result.verdict = SearchResult::Found;
      result.offsets = std::move(offsets_);
    }
    return result;
  }

private:
  Edge edge(uint32_t item, uint64_t at) const {
    return {at, sections_.begin[item], sections_.end[item], item};
  }

  /// Bytes times life, or its root at times: neither is better everywhere.
  void setWeights(unsigned attempt) {
    std::vector<double> keys;
    for (const PackItem &item : items_) {
      const double life = double(item.last - item.first);
      keys.push_back(double(item.bytes) * (attempt % 4 == 3 ? std::sqrt(life) : life));
    }
    const double largest = *llvm::max_element(keys);
    for (double key : keys)
      weights_.push_back(1 + uint64_t(key / largest * double(kFirstWeight)));
  }

  void step() {
    ++steps_;
    std::swap(homeless_[random_() % homeless_.size()], homeless_.back());
    const uint32_t item = homeless_.back();
    homeless_.pop_back();
    const uint64_t offset = findPlace(item), end = offset + items_[item].bytes;
    for (const Edge &other : besideBegins_) // those that findPlace has looked at
      if (other.at < end && other.at + items_[other.item].bytes > offset)
        driveOut(other.item);
    offsets_[item] = offset;
    insert(begins_, edge(item, offset));
    insert(ends_, edge(item, end));
    staysUntil_[item] = steps_ + random_() % kSteps;
  }

  static void insert(Edges &edges, const Edge &edge) {
    edges.insert(llvm::lower_bound(edges, edge), edge);
  }

  void driveOut(uint32_t item) {
    const Edge begin = edge(item, offsets_[item]), end = edge(item, offsets_[item] + items_[item].bytes);
    begins_.erase(llvm::lower_bound(begins_, begin));
    ends_.erase(llvm::lower_bound(ends_, end));
    homeless_.push_back(item);
    weights_[item] += weights_[item] / kGrowth + 1;
    if (weights_[item] > kMostWeight)
      for (uint64_t &weight : weights_)
        weight = weight / kForget + 1;
  }

  uint64_t weightOf(const Edge &edge) const {
    return weights_[edge.item] + (staysUntil_[edge.item] >= steps_ ? kStays : 0);
  }

  void collect(const Edges &from, uint32_t item, Beside &beside) {
    const uint32_t first = sections_.begin[item], last = sections_.end[item];
    beside.count = 0;
    for (const Edge &edge : from) { // no branch: half of the time it would be mispredicted
      beside.edges[beside.count] = edge;
      beside.count += (edge.first < last) & (first < edge.last);
    }
    work_ += kItemWork * from.size();
  }

  /// Of the places considered the one with the least weight in its way: the first with nothing, else any of the equal ones.
  struct Choice {
    void consider(uint64_t weight, uint64_t offset, std::mt19937 &random) {
      if (weight < least) {
        least = weight;
        place = offset;
        equal = 1;
      } else if (weight == least && least > 0 && random() % ++equal == 0) {
        place = offset;
      }
    }
    uint64_t least = UINT64_MAX, place = 0, equal = 0;
  };

  /// Upon another item or at the bottom, or under another one or at the top, as chance has it: to look at both takes twice
  /// as long, and finds less.
  uint64_t findPlace(uint32_t item) {
    collect(begins_, item, besideBegins_);
    collect(ends_, item, besideEnds_);
    return random_() % 2 ? placeUpon(items_[item].bytes) : placeUnder(items_[item].bytes);
  }

  // In the way of [offset, offset + bytes) is what begins below its end, but does not end by its begin.

  uint64_t placeUpon(uint64_t bytes) {
    Choice choice;
    const Edge *begin = besideBegins_.begin(), *end = besideEnds_.begin();
    uint64_t offset = 0, below = 0, behind = 0;
    while (offset + bytes <= capacity_ && choice.least > 0) {
      for (; begin != besideBegins_.end() && begin->at < offset + bytes; ++begin)
        below += weightOf(*begin);
      for (; end != besideEnds_.end() && end->at <= offset; ++end)
        behind += weightOf(*end);
      choice.consider(below - behind, offset, random_);
      if (end == besideEnds_.end())
        break;
      offset = end->at;
    }
    return choice.place;
  }

  uint64_t placeUnder(uint64_t bytes) {
    Choice choice;
    const Edge *end = besideEnds_.begin();
    uint64_t below = 0, behind = 0;
    for (const Edge *begin = besideBegins_.begin(); choice.least > 0; ++begin) {
      const uint64_t top = begin != besideBegins_.end() ? begin->at : capacity_;
      if (top >= bytes) {
        for (; end != besideEnds_.end() && end->at <= top - bytes; ++end)
          behind += weightOf(*end);
        choice.consider(below - behind, top - bytes, random_);
      }
      if (begin == besideBegins_.end())
        break;
      below += weightOf(*begin);
    }
    return choice.place;
  }

  ArrayRef<PackItem> items_;
  const Sections sections_;
  const uint64_t capacity_;
  std::vector<uint64_t> offsets_;    // by item, where placed
  std::vector<uint64_t> weights_;    // by item
  std::vector<uint64_t> staysUntil_; // by item: a step
  std::vector<uint32_t> homeless_;   // items that are not placed
  Edges begins_, ends_;              // of those that are
  Beside besideBegins_, besideEnds_; // scratch of findPlace
  std::mt19937 random_;
  uint64_t steps_ = 0, work_ = 0;
};

} // namespace

SearchResult searchByEviction(ArrayRef<PackItem> items, ArrayRef<uint64_t> offsets, uint64_t capacity,
                              unsigned attempt, uint64_t work) {
  return Search(items, offsets, capacity, attempt).run(work);
}

} // namespace shardc
