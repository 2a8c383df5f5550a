// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Moves.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <random>

using namespace llvm;

namespace shardc {
namespace {

constexpr uint64_t kMaxWork = uint64_t(1) << 29; ///< boxes looked at: about a second
constexpr unsigned kMaxRounds = 400, kMaxMoves = 4;

/// What is taken. Time counts halves: command p runs during 2p, copies before it during 2p - 1.
struct Box {
  uint64_t begin, end, low, high;
  bool meets(uint64_t from, uint64_t to) const { return begin < to && from < end; }
  bool covers(uint64_t bottom, uint64_t top) const { return low < top && bottom < high; }
};

/// An item in the order of placement. `fixed`: where packing without moves put it, before all that are not; `atTop`: not at the lower
/// end of a gap, but at the upper one.
struct Turn {
  uint32_t item;
  bool fixed = false, atTop = false;
};

/// What an attempt left over, then what it moved.
using Cost = std::pair<uint64_t, uint64_t>;

/// Places items one after the other.
class Attempt {
public:
  Attempt(ArrayRef<MovableItem> items, const PackResult &packed, uint64_t capacity, uint64_t &work)
      : items_(items), packed_(packed), capacity_(capacity), work_(work), pieces_(items.size()) {}

  Cost run(ArrayRef<Turn> order) {
    for (Turn turn : order) {
      const MovableItem &item = items_[turn.item];
      if (turn.fixed)
        take(turn.item, 2 * item.first, endOf(item), packed_.offsets[turn.item]);
      else if (!placeWhole(turn) && !placeInPieces(turn.item)) {
        cost_.first += item.bytes;
        troubled_.push_back(turn.item);
        continue;
      }
      if (size_t moves = pieces_[turn.item].size() - 1) {
        cost_.second += moves * item.bytes;
        troubled_.push_back(turn.item);
      }
    }
    return cost_;
  }

  std::vector<SmallVector<Piece, 1>> takePieces() { return std::move(pieces_); }
  /// Left over or moved, in the order of placement.
  ArrayRef<uint32_t> troubled() const { return troubled_; }

private:
  static uint64_t endOf(const MovableItem &item) { return 2 * item.last - 1; }

  void take(uint32_t index, uint64_t begin, uint64_t end, uint64_t offset) {
    Box box{begin, end, offset, offset + items_[index].bytes};
    if (items_[index].bytes)
      boxes_.insert(llvm::upper_bound(boxes_, offset, [](uint64_t o, const Box &b) { return o < b.low; }), box);
    pieces_[index].push_back({(begin + 1) / 2, offset});
  }

  /// Those that live at a time with the item, by address.
  std::vector<Box> neighbours(const MovableItem &item) {
    std::vector<Box> near;
    for (const Box &box : boxes_)
      if (box.meets(2 * item.first, endOf(item)))
        near.push_back(box);
    work_ += boxes_.size();
    return near;
  }

  /// Into the smallest gap that takes it.
  bool placeWhole(Turn turn) {
    const MovableItem &item = items_[turn.item];
    uint64_t top = 0, bestGap = UINT64_MAX, bestOffset = 0;
    auto gap = [&](uint64_t end) {
      if (end >= top && end - top >= item.bytes && end - top < bestGap) {
        bestGap = end - top;
        bestOffset = turn.atTop ? end - item.bytes : top;
      }
    };
    for (const Box &box : neighbours(item)) {
      gap(box.low);
      top = std::max(top, box.high);
    }
    gap(capacity_);
    if (bestGap == UINT64_MAX)
      return false;
    take(turn.item, 2 * item.first, endOf(item), bestOffset);
    return true;
  }

  /// The last position in `gaps` that is at most `most`; 0: none.
  static uint64_t lastGap(const MovableItem &item, uint64_t most) {
    for (auto [from, to] : llvm::reverse(item.gaps))
      if (from <= most)
        return std::min(to, most);
    return 0;
  }

  struct Spot {
    uint64_t offset, until, since; ///< free from the time asked for until `until`, and from `since` to the item's end
  };

  /// Offsets that touch something, for an item from `from` on.
  std::vector<Spot> spots(const MovableItem &item, uint64_t from, ArrayRef<Box> near) {
    std::vector<uint64_t> offsets{0, capacity_ - item.bytes};
    for (const Box &box : near) {
      offsets.push_back(box.high);
      offsets.push_back(box.low >= item.bytes ? box.low - item.bytes : 0);
    }
    llvm::sort(offsets);
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    std::vector<Spot> result;
    for (uint64_t offset : offsets) {
      if (offset + item.bytes > capacity_)
        break;
      Spot spot{offset, endOf(item), from};
      for (const Box &box : near)
        if (box.covers(offset, offset + item.bytes) && box.end > from) {
          spot.until = std::min(spot.until, std::max(box.begin, from));
          spot.since = std::max(spot.since, std::min(box.end, endOf(item)));
        }
      result.push_back(spot);
    }
    work_ += near.size() * result.size();
    return result;
  }

  /// As few pieces as can be, each as long as can be.
  bool placeInPieces(uint32_t index) {
    const MovableItem &item = items_[index];
    if (item.gaps.empty() || item.bytes > capacity_)
      return false;
    std::vector<Box> near = neighbours(item);
    std::vector<std::pair<uint64_t, uint64_t>> found; // begin, offset
    uint64_t begin = 2 * item.first;
    for (unsigned moves = 0; moves < kMaxMoves; ++moves) {
      std::vector<Spot> here = spots(item, begin, near);
      llvm::stable_sort(here, [](const Spot &a, const Spot &b) { return a.until > b.until; });
      if (here.empty())
        return false;
      if (here.front().until == endOf(item)) {
        found.push_back({begin, here.front().offset});
        commit(index, found);
        return true;
      }
      std::vector<Spot> there = here;
      llvm::stable_sort(there, [](const Spot &a, const Spot &b) { return a.since < b.since; });
      // The spot that is free the longest, unless another one lets the next piece be the last.
      const Spot *best = nullptr, *next = nullptr;
      for (const Spot &a : here) {
        uint64_t gap = lastGap(item, a.until / 2);
        if (2 * gap < begin + 2)
          break;
        if (!best)
          best = &a;
        for (const Spot &b : there) {
          if (b.since > 2 * gap - 1)
            break;
          if (b.offset + item.bytes <= a.offset || a.offset + item.bytes <= b.offset) {
            next = &b;
            break;
          }
        }
        work_ += there.size();
        if (next) {
          best = &a;
          break;
        }
      }
      if (!best)
        return false;
      uint64_t gap = lastGap(item, best->until / 2);
      found.push_back({begin, best->offset});
      near.push_back({begin, 2 * gap, best->offset, best->offset + item.bytes});
      begin = 2 * gap - 1;
    }
    return false;
  }

  void commit(uint32_t index, ArrayRef<std::pair<uint64_t, uint64_t>> found) {
    for (auto [i, piece] : llvm::enumerate(found)) // a piece ends with the copy, behind the begin of the next
      take(index, piece.first, i + 1 < found.size() ? found[i + 1].first + 1 : endOf(items_[index]), piece.second);
  }

  ArrayRef<MovableItem> items_;
  const PackResult &packed_;
  uint64_t capacity_;
  uint64_t &work_;
  std::vector<Box> boxes_; ///< by address
  std::vector<SmallVector<Piece, 1>> pieces_;
  std::vector<uint32_t> troubled_;
  Cost cost_;
};

class MoveSearch {
public:
  MoveSearch(ArrayRef<MovableItem> items, const PackResult &packed, uint64_t capacity, uint64_t alignment)
      : items_(items.begin(), items.end()), packed_(packed), capacity_(alignDown(capacity, alignment)) {
    for (MovableItem &item : items_)
      item.bytes = alignTo(item.bytes, alignment);
  }

  MovePacking run() {
    startFromPacked();
    start([](const MovableItem &i) { return double(i.bytes); });
    start([](const MovableItem &i) { return double(i.bytes) * double(i.last - i.first); });
    start([](const MovableItem &i) { return double(i.last - i.first); });
    improve();
    best_.fits = cost_.first == 0;
    best_.movedBytes = cost_.second;
    return std::move(best_);
  }

private:
  /// What sticks out is placed anew, the largest first.
  void startFromPacked() {
    std::vector<Turn> order;
    for (uint32_t i = 0; i < items_.size(); ++i)
      order.push_back({i, packed_.offsets[i] + items_[i].bytes <= capacity_});
    llvm::stable_sort(order, [&](Turn a, Turn b) { return items_[a.item].bytes > items_[b.item].bytes; });
    attempt(std::move(order));
  }

  template <typename Key> void start(Key key) {
    std::vector<Turn> order;
    for (uint32_t i = 0; i < items_.size(); ++i)
      order.push_back({i});
    llvm::stable_sort(order, [&](Turn a, Turn b) { return key(items_[a.item]) > key(items_[b.item]); });
    attempt(std::move(order));
  }

  void attempt(std::vector<Turn> order) {
    if (done() && !order_.empty())
      return;
    llvm::stable_sort(order, [](Turn a, Turn b) { return a.fixed > b.fixed; });
    Attempt attempt(items_, packed_, capacity_, work_);
    Cost cost = attempt.run(order);
    if (!order_.empty() && cost > cost_)
      return;
    cost_ = cost;
    order_ = std::move(order);
    troubled_ = attempt.troubled().vec();
    best_.pieces = attempt.takePieces();
  }

  /// Who was left over or moved came too late: it, or somebody who lives with it, gets another turn. Random by a fixed sequence.
  void improve() {
    std::mt19937 random(1);
    for (unsigned round = 0; round < kMaxRounds && !done(); ++round) {
      std::vector<Turn> order = order_;
      uint32_t troubled = troubled_[random() % troubled_.size()];
      auto at = llvm::find_if(order, [&](Turn t) { return t.item == troubled; });
      if (round % 2) { // it before a neighbour
        std::vector<size_t> before;
        for (auto [i, turn] : llvm::enumerate(order))
          if (&turn < &*at && items_[turn.item].first < items_[troubled].last && items_[troubled].first < items_[turn.item].last)
            before.push_back(i);
        if (before.empty())
          continue;
        size_t neighbour = before[random() % before.size()];
        order[neighbour] = {order[neighbour].item, false, bool(random() % 2)};
        std::rotate(order.begin() + neighbour, order.begin() + neighbour + 1, at + 1);
      } else {
        *at = {troubled, false, bool(random() % 2)};
        std::rotate(order.begin() + random() % (at - order.begin() + 1), at, at + 1);
      }
      attempt(std::move(order));
    }
  }

  bool done() const { return cost_ == Cost(0, 0) || work_ > kMaxWork; }

  std::vector<MovableItem> items_;
  const PackResult &packed_;
  uint64_t capacity_;
  uint64_t work_ = 0;
  Cost cost_;
  std::vector<Turn> order_;
  std::vector<uint32_t> troubled_;
  MovePacking best_;
};

} // namespace

MovePacking packWithMoves(ArrayRef<MovableItem> items, const PackResult &packed, uint64_t capacity, uint64_t alignment) {
  return MoveSearch(items, packed, capacity, alignment).run();
}

} // namespace shardc
