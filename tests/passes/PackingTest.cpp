// SPDX-License-Identifier: Apache-2.0
#include "passes/memory/Packing.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace shardc {
namespace {

struct PackProblem {
  std::vector<PackItem> items;
  uint64_t alignment = 256;
};

PackResult pack(const PackProblem &problem) {
  return shardc::pack(problem.items, problem.alignment, {.slack = 0, .work = 1 << 24});
}

uint64_t rounded(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

/// Pairwise, from the definition; shares nothing with the packer.
void expectValid(const PackProblem &problem, const PackResult &solution) {
  ASSERT_EQ(solution.offsets.size(), problem.items.size());
  uint64_t height = 0;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const PackItem &a = problem.items[i];
    uint64_t begin = solution.offsets[i], end = begin + rounded(a.bytes, problem.alignment);
    ASSERT_EQ(begin % problem.alignment, 0);
    height = std::max(height, end);
    for (size_t j = 0; j < i; ++j) {
      const PackItem &b = problem.items[j];
      uint64_t begin2 = solution.offsets[j], end2 = begin2 + rounded(b.bytes, problem.alignment);
      bool together = a.first < b.last && b.first < a.last;
      ASSERT_FALSE(together && begin < end2 && begin2 < end) << i << " and " << j;
    }
  }
  ASSERT_EQ(height, solution.height);
  uint64_t bound = 0;
  for (const PackItem &at : problem.items) { // the largest sum is reached where something begins
    uint64_t live = 0;
    for (const PackItem &item : problem.items)
      if (item.first <= at.first && at.first < item.last)
        live += rounded(item.bytes, problem.alignment);
    bound = std::max(bound, live);
  }
  ASSERT_EQ(bound, solution.lowerBound);
  ASSERT_GE(solution.height, bound);
}

PackProblem randomProblem(unsigned seed, unsigned count, uint64_t times) {
  std::mt19937 random(seed);
  PackProblem problem;
  problem.alignment = seed % 3 ? 256 : 1;
  for (unsigned i = 0; i < count; ++i) {
    uint64_t first = random() % times, life = 1 + random() % (seed % 2 ? times : 8);
    problem.items.push_back({uint64_t(random() % 5 ? random() % 5000 : 0), first, first + life});
  }
  return problem;
}

/// Saved by forward, freed by backward, with short-lived buffers beside it: a pyramid.
PackProblem pyramid(uint64_t layers) {
  PackProblem problem;
  for (uint64_t l = 0; l < layers; ++l) {
    uint64_t size = 1 << 20;
    problem.items.push_back({size * (1 + l % 3), 2 * l, 4 * layers - 2 * l});
    problem.items.push_back({size * 4, 2 * l, 2 * l + 1});
    problem.items.push_back({size * 2, 4 * layers - 2 * l - 1, 4 * layers - 2 * l + 1});
  }
  return problem;
}

/// The lowest height over all orders of placing each item as low as possible: optimal, since every
/// solution can be pushed down in order of its offsets.
uint64_t exhaustive(const PackProblem &problem) {
  std::vector<size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0);
  uint64_t best = UINT64_MAX;
  do {
    std::vector<std::pair<size_t, uint64_t>> placed;
    uint64_t height = 0;
    for (size_t i : order) {
      const PackItem &a = problem.items[i];
      uint64_t offset = 0, size = rounded(a.bytes, problem.alignment);
      for (bool moved = true; moved;) {
        moved = false;
        for (auto [j, at] : placed) {
          const PackItem &b = problem.items[j];
          uint64_t end = at + rounded(b.bytes, problem.alignment);
          if (a.first < b.last && b.first < a.last && offset < end && at < offset + size) {
            offset = end;
            moved = true;
          }
        }
      }
      placed.push_back({i, offset});
      height = std::max(height, offset + size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Packing, NothingTakesNoMemory) {
  PackResult solution = pack(PackProblem());
  EXPECT_EQ(solution.height, 0);
  EXPECT_EQ(solution.lowerBound, 0);
}

TEST(Packing, ReusesTheMemoryOfWhatEnded) {
  PackResult solution = pack(PackProblem{{{1000, 0, 2}, {1000, 2, 4}, {1000, 1, 3}}});
  EXPECT_EQ(solution.offsets[0], solution.offsets[1]);
  EXPECT_EQ(solution.height, 2048);
}

TEST(Packing, RandomProblemsAreValid) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    PackProblem problem = randomProblem(seed, 1 + seed * 5, 4 + seed);
    expectValid(problem, pack(problem));
  }
}

TEST(Packing, StaysNearTheOptimumOfSmallProblems) {
  uint64_t ours = 0, optimal = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    PackProblem problem = randomProblem(seed, 6, 7);
    uint64_t height = pack(problem).height, best = exhaustive(problem);
    EXPECT_GE(height, best);
    ours += height;
    optimal += best;
  }
  EXPECT_LE(double(ours), 1.002 * double(optimal));
}

TEST(Packing, TrainingStepMeetsTheBound) {
  PackProblem problem = pyramid(400);
  PackResult solution = pack(problem);
  expectValid(problem, solution);
  EXPECT_LE(double(solution.height), 1.005 * double(solution.lowerBound));
}

TEST(Packing, ScaledSizesScaleTheArena) {
  PackProblem problem = randomProblem(7, 80, 40);
  problem.alignment = 1;
  for (PackItem &item : problem.items)
    item.bytes <<= 20; // so that shares of a height are whole numbers
  PackResult once = pack(problem);
  for (PackItem &item : problem.items)
    item.bytes *= 8;
  PackResult scaled = pack(problem);
  EXPECT_EQ(scaled.height, 8 * once.height);
  for (size_t i = 0; i < problem.items.size(); ++i)
    EXPECT_EQ(scaled.offsets[i], 8 * once.offsets[i]);
}

TEST(Packing, RepeatsItself) {
  PackProblem problem = randomProblem(9, 200, 60);
  EXPECT_EQ(pack(problem).offsets, pack(problem).offsets);
}

} // namespace
} // namespace shardc
