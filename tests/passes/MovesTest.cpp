// SPDX-License-Identifier: Apache-2.0
// Packing with moves: what it finds is valid by definition, and as cheap as an exhaustive search over single moves.
#include "passes/memory/Moves.h"
#include <gtest/gtest.h>
#include <random>

namespace shardc {
namespace {

/// Times in halves: command p at 2p, what is copied before it at 2p - 1.
struct Rectangle {
  uint64_t bytes, begin, end, offset = 0;
};

bool apart(const Rectangle &a, const Rectangle &b) {
  return a.end <= b.begin || b.end <= a.begin || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
}

std::vector<Rectangle> rectanglesOf(llvm::ArrayRef<MovableItem> items, const MovePacking &packing) {
  std::vector<Rectangle> result;
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t k = 0; k < packing.pieces[i].size(); ++k) {
      const bool isLast = k + 1 == packing.pieces[i].size();
      result.push_back({items[i].bytes, k ? 2 * packing.pieces[i][k].from - 1 : 2 * items[i].first,
                        isLast ? 2 * items[i].last - 1 : 2 * packing.pieces[i][k + 1].from,
                        packing.pieces[i][k].offset});
    }
  return result;
}

void expectValid(llvm::ArrayRef<MovableItem> items, const MovePacking &packing, uint64_t capacity) {
  ASSERT_EQ(packing.pieces.size(), items.size());
  uint64_t moved = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_FALSE(packing.pieces[i].empty());
    EXPECT_EQ(packing.pieces[i][0].from, items[i].first);
    for (const Piece &piece : llvm::ArrayRef(packing.pieces[i]).drop_front()) {
      moved += items[i].bytes;
      bool allowed = false;
      for (auto [from, to] : items[i].gaps)
        allowed |= from <= piece.from && piece.from <= to;
      EXPECT_TRUE(allowed) << "item " << i << " before " << piece.from;
    }
  }
  EXPECT_EQ(moved, packing.movedBytes);
  std::vector<Rectangle> all = rectanglesOf(items, packing);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(all[i].offset + all[i].bytes, capacity);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(apart(all[i], all[j])) << i << " and " << j;
  }
}

/// Can they all be placed below `capacity`? By trying: each in turn, the lowest free place above those before
/// it in address.
bool canPack(std::vector<Rectangle> &items, size_t placed, uint64_t floor, uint64_t capacity) {
  if (placed == items.size())
    return true;
  for (size_t i = placed; i < items.size(); ++i) {
    std::swap(items[placed], items[i]);
    Rectangle &item = items[placed];
    item.offset = 0;
    for (size_t j = 0; j < placed; ++j)
      if (item.begin < items[j].end && items[j].begin < item.end)
        item.offset = std::max(item.offset, items[j].offset + items[j].bytes);
    if (item.offset >= floor && item.offset + item.bytes <= capacity &&
        canPack(items, placed + 1, item.offset, capacity))
      return true;
    std::swap(items[placed], items[i]);
  }
  return false;
}

/// The fewest bytes in one move that let the items fit: 0 if none is needed, UINT64_MAX if one is not enough.
uint64_t cheapestMove(llvm::ArrayRef<MovableItem> items, uint64_t capacity) {
  std::vector<Rectangle> whole;
  for (const MovableItem &item : items)
    whole.push_back({item.bytes, 2 * item.first, 2 * item.last - 1});
  if (std::vector<Rectangle> copy = whole; canPack(copy, 0, 0, capacity))
    return 0;
  uint64_t best = UINT64_MAX;
  for (size_t i = 0; i < items.size(); ++i)
    for (auto [from, to] : items[i].gaps)
      for (uint64_t gap = from; gap <= to && items[i].bytes < best; ++gap) {
        std::vector<Rectangle> cut = whole;
        cut[i].end = 2 * gap;
        cut.push_back({items[i].bytes, 2 * gap - 1, 2 * items[i].last - 1});
        if (canPack(cut, 0, 0, capacity))
          best = items[i].bytes;
      }
  return best;
}

uint64_t boundOf(llvm::ArrayRef<MovableItem> items) {
  uint64_t bound = 0;
  for (const PackItem &at : items) {
    uint64_t live = 0;
    for (const PackItem &item : items)
      if (item.first <= at.first && at.first < item.last)
        live += item.bytes;
    bound = std::max(bound, live);
  }
  return bound;
}

PackResult withoutMoves(llvm::ArrayRef<MovableItem> items) {
  return pack(std::vector<PackItem>(items.begin(), items.end()), 1);
}

MovePacking packed(llvm::ArrayRef<MovableItem> items, uint64_t capacity) {
  return packWithMoves(items, withoutMoves(items), capacity, 1);
}

/// Begins and ends at random, as much as `capacity` holds at most: nearly full at all times.
std::vector<MovableItem> tightProblem(std::mt19937 &random, uint64_t capacity, uint64_t times) {
  std::vector<MovableItem> items;
  std::vector<size_t> live;
  uint64_t used = 0;
  for (uint64_t t = 0; t < times; ++t) {
    std::erase_if(live, [&](size_t i) {
      if (random() % 2)
        return false;
      items[i].last = t;
      used -= items[i].bytes;
      return true;
    });
    while (used < capacity && random() % 4) {
      uint64_t bytes = std::min<uint64_t>(1 + random() % 3, capacity - used);
      live.push_back(items.size());
      items.push_back({{bytes, t, 0}});
      used += bytes;
    }
  }
  for (size_t i : live)
    items[i].last = times;
  for (MovableItem &item : items)
    if (item.first + 1 < item.last)
      item.gaps.push_back({item.first + 1, item.last - 1});
  return items;
}

/// u1 and u2 lie at the ends of 4 units, as each lives with 3; between them is no place for u3 that leaves 2
/// free beside either: only a move lets them fit.
std::vector<MovableItem> stuckProblem(uint64_t unit) {
  std::vector<MovableItem> items = {{{1, 0, 3}, {{1, 2}}}, {{3, 0, 1}}, {{1, 1, 4}, {{2, 3}}}, {{2, 1, 2}},
                                    {{1, 2, 5}, {{3, 4}}}, {{2, 3, 4}}, {{3, 4, 5}}};
  for (MovableItem &item : items)
    item.bytes *= unit;
  return items;
}

TEST(Moves, OneUnitIsMovedWhereOnlyThatFits) {
  const std::vector<MovableItem> items = stuckProblem(1);
  ASSERT_EQ(boundOf(items), 4u);
  ASSERT_EQ(cheapestMove(items, 4), 1u);
  MovePacking packing = packed(items, 4);
  ASSERT_TRUE(packing.fits);
  expectValid(items, packing, 4);
  EXPECT_EQ(packing.movedBytes, 1u);
  // Nothing may be moved at all, or only when there is no room for two.
  std::vector<MovableItem> fixed = items;
  for (MovableItem &item : fixed)
    item.gaps.clear();
  EXPECT_FALSE(packed(fixed, 4).fits);
  fixed[2].gaps = {{2, 2}};
  EXPECT_EQ(packed(fixed, 4).fits, cheapestMove(fixed, 4) != UINT64_MAX);
}

/// What lies at the upper end of a budget that is no multiple of the alignment is aligned all the same.
TEST(Moves, OffsetsAreAlignedWhateverTheCapacity) {
  const std::vector<MovableItem> items = stuckProblem(256);
  PackResult without = withoutMoves(items);
  for (uint64_t more : {0, 1, 100, 255}) {
    MovePacking packing = packWithMoves(items, without, 1024 + more, 256);
    ASSERT_TRUE(packing.fits) << more;
    for (auto &pieces : packing.pieces)
      for (const Piece &piece : pieces)
        EXPECT_EQ(piece.offset % 256, 0u) << more;
  }
  EXPECT_FALSE(packWithMoves(items, without, 1023, 256).fits);
}

TEST(Moves, NothingMovesWhereAllFits) {
  const std::vector<MovableItem> items = {{{5, 0, 2}, {{1, 1}}}, {{7, 1, 3}, {{2, 2}}}, {{5, 2, 4}, {{3, 3}}}};
  MovePacking packing = packed(items, 12);
  ASSERT_TRUE(packing.fits);
  expectValid(items, packing, 12);
  EXPECT_EQ(packing.movedBytes, 0u);
  EXPECT_FALSE(packed(items, 11).fits);
}

TEST(Moves, AsCheapAsTheCheapestSingleMove) {
  unsigned needed = 0, cheapest = 0;
  for (unsigned seed = 0; seed < 90; ++seed) {
    std::mt19937 random(seed);
    std::vector<MovableItem> items = tightProblem(random, seed % 6, 5);
    for (const MovableItem &item : stuckProblem(1 + seed % 2)) // beside it, not only above it
      items.insert(items.begin() + random() % (items.size() + 1), item);
    if (items.size() > 10)
      continue;
    const uint64_t capacity = boundOf(items), best = cheapestMove(items, capacity);
    MovePacking packing = packed(items, capacity);
    if (packing.fits)
      expectValid(items, packing, capacity);
    EXPECT_TRUE(packing.fits || best == UINT64_MAX) << seed;
    needed += best != 0 && best != UINT64_MAX;
    cheapest += best != 0 && best != UINT64_MAX && packing.fits && packing.movedBytes <= best;
  }
  EXPECT_GE(needed, 15u);
  EXPECT_EQ(cheapest, needed);
}

TEST(Moves, LargeProblemsAreValidAndRepeatThemselves) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    std::vector<MovableItem> items = tightProblem(random, 60, 40);
    PackResult without = withoutMoves(items);
    MovePacking packing = packWithMoves(items, without, without.lowerBound, 1),
                again = packWithMoves(items, without, without.lowerBound, 1);
    EXPECT_EQ(packing.fits, again.fits);
    EXPECT_EQ(packing.movedBytes, again.movedBytes);
    if (packing.fits)
      expectValid(items, packing, without.lowerBound);
    else
      EXPECT_GT(without.height, without.lowerBound);
  }
}

} // namespace
} // namespace shardc
