// SPDX-License-Identifier: Apache-2.0
// Branch and bound: exact where an exhaustive search is possible, at the bound where a packing
// without holes is known, and MiniMalloc's instances; and the judge of packings itself.
#include "passes/memory/CheckPacking.h"
#include "passes/memory/EvictionSearch.h"
#include "passes/memory/PeakSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace shardc {
namespace {

using Items = std::vector<PackItem>;

std::string faultOf(const Items &items, uint64_t alignment, const PackResult &result) {
  return llvm::toString(checkPacking(items, alignment, result));
}

/// The lowest height over all orders of placing each item as low as those before it permit, which
/// is the optimum.
uint64_t exhaustive(const Items &items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  uint64_t best = UINT64_MAX;
  do {
    std::vector<uint64_t> end(items.size(), 0);
    uint64_t height = 0;
    for (size_t k = 0; k < order.size();
         ++k) { // above all that lives with it: enough, over all orders
      const PackItem &a = items[order[k]];
      uint64_t offset = 0;
      for (size_t l = 0; l < k; ++l) {
        const PackItem &b = items[order[l]];
        if (a.first < b.last && b.first < a.last)
          offset = std::max(offset, end[order[l]]);
      }
      end[order[k]] = offset + a.bytes;
      height = std::max(height, end[order[k]]);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// Cuts a rectangle of time and addresses into `count` items, by straight cuts: they fill it
/// without a hole.
Items guillotine(unsigned seed, unsigned count, uint64_t times, uint64_t bytes) {
  std::mt19937 random(seed);
  Items items = {{bytes, 0, times}};
  while (items.size() < count) {
    size_t i = random() % items.size();
    PackItem &item = items[i];
    uint64_t life = item.last - item.first;
    if (random() % 2 && life > 1) {
      uint64_t cut = item.first + 1 + random() % (life - 1);
      items.push_back({item.bytes, cut, item.last});
      items[i].last = cut;
    } else if (item.bytes > 1) {
      uint64_t below = 1 + random() % (item.bytes - 1);
      items.push_back({item.bytes - below, item.first, item.last});
      items[i].bytes = below;
    }
  }
  std::shuffle(items.begin(), items.end(), random);
  return items;
}

Items randomItems(std::mt19937 &random, unsigned count) {
  Items items;
  for (unsigned i = 0; i < count; ++i) {
    uint64_t first = random() % 8;
    items.push_back({1 + random() % 6, first, first + 1 + random() % 4});
  }
  return items;
}

TEST(PackingSearch, IsExactForSmallProblems) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 90; ++round) {
    Items items = randomItems(random, round < 60 ? 2 + round % 6 : 8);
    uint64_t best = exhaustive(items);
    SearchResult at = searchPeak(items, best, 1 << 24),
                 below = searchPeak(items, best - 1, 1 << 24);
    ASSERT_EQ(at.verdict, SearchResult::Found);
    ASSERT_EQ(below.verdict, SearchResult::Impossible);
    PackResult packed = pack(items, 1, {.slack = 0, .work = 1 << 24});
    ASSERT_EQ(packed.height, best);
    ASSERT_EQ(faultOf(items, 1, packed), "");
  }
}

/// Side by side in an order that says nothing: the sum of all.
std::vector<uint64_t> piledUp(const Items &items) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const PackItem &item : items) {
    offsets.push_back(end);
    end += item.bytes;
  }
  return offsets;
}

TEST(PackingSearch, EvictionFindsTheOptimumOfSmallProblemsAndNothingBelow) {
  std::mt19937 random(4);
  unsigned found = 0;
  for (unsigned round = 0; round < 60; ++round) {
    Items items = randomItems(random, 2 + round % 6);
    uint64_t best = exhaustive(items), bound = pack(items, 1).lowerBound;
    SearchResult at = searchByEviction(items, piledUp(items), best, 0, 1 << 20);
    found += at.verdict == SearchResult::Found;
    if (at.verdict == SearchResult::Found) {
      PackResult packed{at.offsets, 0, bound};
      for (size_t i = 0; i < items.size(); ++i)
        packed.height = std::max(packed.height, at.offsets[i] + items[i].bytes);
      ASSERT_EQ(packed.height, best);
      ASSERT_EQ(faultOf(items, 1, packed), "");
    }
    if (best > bound) {
      SearchResult below = searchByEviction(items, piledUp(items), best - 1, 0, 1 << 14);
      ASSERT_EQ(below.verdict, SearchResult::OutOfWork);
    }
  }
  EXPECT_EQ(found, 60u);
}

TEST(PackingSearch, EvictionStartsFromWhatItIsGiven) {
  Items items = guillotine(7, 40, 100, 1 << 16);
  PackResult packed = pack(items, 1, {.slack = 0});
  ASSERT_EQ(packed.height, 1u << 16);
  SearchResult same = searchByEviction(items, packed.offsets, 1 << 16, 3, 1 << 10);
  EXPECT_EQ(same.verdict, SearchResult::Found); // nothing sticks out, nothing is moved
  EXPECT_EQ(same.offsets, packed.offsets);
  EXPECT_EQ(same.work, 0u);
}

TEST(PackingSearch, ProvesThatTheBoundIsOutOfReach) {
  Items items = {{1, 1, 4}, {3, 5, 8}, {1, 3, 7}, {1, 3, 5}, {2, 4, 6},
                 {2, 1, 5}, {1, 3, 4}, {3, 0, 2}, {3, 0, 1}};
  PackResult packed = pack(items, 1, {.slack = 0, .work = 1 << 24});
  EXPECT_EQ(faultOf(items, 1, packed), "");
  EXPECT_EQ(packed.lowerBound, 6u);
  EXPECT_EQ(packed.height, exhaustive(items));
  EXPECT_EQ(packed.height, 7u);
  EXPECT_EQ(searchPeak(items, 6, 1 << 20).verdict, SearchResult::Impossible);
}

TEST(PackingSearch, FillsRectangles) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Items items = guillotine(seed, 5 + seed, 40, 1 << 20);
    PackResult packed =
        pack(items, 1, {.capacity = 1 << 20, .slack = 0, .work = uint64_t(1) << 30});
    ASSERT_EQ(faultOf(items, 1, packed), "");
    ASSERT_EQ(packed.height, 1u << 20) << "seed " << seed << " by " << packed.method;
  }
}

TEST(PackingSearch, OrderOfItemsSaysNothing) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 20; ++round) {
    Items items = guillotine(round, 60, 200, 1 << 16);
    std::vector<uint32_t> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Items shuffled;
    for (uint32_t i : order)
      shuffled.push_back(items[i]);
    PackLimits limits{.slack = 0, .work = 1 << 22};
    PackResult a = pack(items, 16, limits), b = pack(shuffled, 16, limits);
    ASSERT_EQ(a.height, b.height);
    for (size_t k = 0; k < order.size(); ++k) {
      auto equal = [&](const PackItem &i) {
        return i.first == shuffled[k].first && i.last == shuffled[k].last &&
               i.bytes == shuffled[k].bytes;
      };
      if (llvm::count_if(items, equal) == 1) {
        ASSERT_EQ(b.offsets[k], a.offsets[order[k]]);
      }
    }
  }
}

TEST(PackingSearch, StopsAtTheCapacityAndAtTheWork) {
  Items items = guillotine(1, 200, 100, 1 << 20);
  PackResult easy = pack(items, 1, {.capacity = 1 << 22, .slack = 0});
  EXPECT_LE(easy.height, 1u << 22);
  EXPECT_STREQ(easy.method, "life"); // the first that fits
  SearchResult none = searchPeak(items, 1 << 20, 100);
  EXPECT_EQ(none.verdict, SearchResult::OutOfWork);
  EXPECT_LE(none.work, 100u);
}

TEST(PackingCheck, NamesWhatIsWrong) {
  Items items = {{1000, 0, 2}, {1000, 2, 4}, {1000, 1, 3}, {0, 0, 9}};
  PackResult good = pack(items);
  ASSERT_EQ(faultOf(items, 256, good), "");
  PackResult bad = good;
  bad.offsets[2] = bad.offsets[0];
  EXPECT_EQ(faultOf(items, 256, bad),
            "item 2: lies over item 0 at time 1: got [" + std::to_string(bad.offsets[2]) + ", " +
                std::to_string(bad.offsets[2] + 1024) + ") and [" + std::to_string(bad.offsets[0]) +
                ", " + std::to_string(bad.offsets[0] + 1024) + "), wanted them apart");
  bad = good;
  bad.offsets[1] += 8;
  EXPECT_EQ(faultOf(items, 256, bad),
            "item 1: offset: got " + std::to_string(bad.offsets[1]) + ", wanted a multiple of 256");
  bad = good;
  bad.height += 256;
  EXPECT_EQ(faultOf(items, 256, bad), "packing: height: got 2304, wanted 2048");
  bad = good;
  bad.lowerBound -= 256;
  EXPECT_EQ(faultOf(items, 256, bad), "packing: lower bound: got 1792, wanted 2048");
  bad = good;
  bad.offsets.pop_back();
  EXPECT_EQ(faultOf(items, 256, bad), "packing: offsets: got 3, wanted 4");
}

void expectInstance(char name, uint64_t capacity) {
  std::string path = std::string("../shared/data/minimalloc/challenging-") + name + ".1048576.csv",
              line;
  std::ifstream file(path);
  if (!file)
    GTEST_SKIP() << path << " is not there";
  Items items;
  std::getline(file, line); // id,lower,upper,size
  for (long id, lower, upper, size;
       std::getline(file, line) &&
       sscanf(line.c_str(), "%ld,%ld,%ld,%ld", &id, &lower, &upper, &size) == 4;)
    items.push_back({uint64_t(size), uint64_t(lower), uint64_t(upper)});
  ASSERT_GT(items.size(), 100u);
  PackResult packed = pack(items, 1, {.capacity = capacity, .slack = 0, .work = uint64_t(1) << 33});
  EXPECT_EQ(faultOf(items, 1, packed), "");
  EXPECT_LE(packed.height, capacity) << name;
}

// D and J have room above what lives at once, C none at all.
TEST(PackingSearch, MiniMallocEasy) {
  for (char name : {'F', 'G', 'K'})
    expectInstance(name, 1048576);
  expectInstance('J', 1045000);
  expectInstance('C', 1039360);
}

TEST(PackingSearch, MiniMallocHardLong) {
  for (char name : {'A', 'B', 'C', 'D', 'E', 'H', 'I', 'J'})
    expectInstance(name, 1048576);
}

} // namespace
} // namespace shardc
