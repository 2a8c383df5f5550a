// SPDX-License-Identifier: Apache-2.0
// What tests of communicators share: groups of each kind, ranks as threads, random arrays and their sums by a
// plain loop.
#pragma once

#include "ir/base/DType.h"
#include "runtime/comm/Communicator.h"
#include "gtest/gtest.h"
#include <thread>
#include <tuple>
#include <vector>

namespace shardc {

using Ends = std::vector<std::unique_ptr<Communicator>>;

struct GroupKind {
  const char *name;
  Ends (*make)(unsigned ranks);
  std::string (*whyMissing)() = nullptr; ///< "" or why this machine cannot have one: tests are skipped
};
/// Every implementation that this program tests (GroupKinds.cpp), each with arrays that fit its memory at once and arrays that do not.
std::vector<GroupKind> groupKinds();

/// A name that no other group has.
std::string uniqueJob();

/// Calls f(end, rank) on a thread for each rank, and waits for all of them.
template <typename F> void onEachRank(const Ends &ends, F f) {
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < ends.size(); ++r)
    threads.emplace_back([&, r] { f(*ends[r], r); });
  for (std::thread &thread : threads)
    thread.join();
}

class GroupTest : public testing::TestWithParam<std::tuple<GroupKind, unsigned>> {
protected:
  void SetUp() override {
    const GroupKind &kind = std::get<0>(GetParam());
    if (std::string why = kind.whyMissing ? kind.whyMissing() : ""; !why.empty())
      GTEST_SKIP() << why;
    ends = kind.make(ranks);
    ASSERT_EQ(ends.size(), ranks);
  }
  const unsigned ranks = std::get<1>(GetParam());
  Ends ends;
};

/// The suite of a fixture for all kinds and 1, 2, 3, 5 and 8 ranks.
#define SHARDC_EACH_GROUP(FIXTURE)                                                                           \
  INSTANTIATE_TEST_SUITE_P(                                                                                  \
      Each, FIXTURE, testing::Combine(testing::ValuesIn(groupKinds()), testing::Values(1u, 2u, 3u, 5u, 8u)), \
      [](const auto &info) {                                                                                 \
        return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));                       \
      })

/// Bytes of an array of its own, so that sanitizers see its borders.
using Bytes = std::vector<char>;

/// Values of very different size, so that the order of a sum shows. Depends on all arguments.
Bytes randomArray(DType dtype, int64_t n, unsigned rank, uint64_t seed);
/// The sum of arrays, element by element in their order.
Bytes plainSum(DType dtype, const std::vector<Bytes> &arrays);
Bytes endToEnd(const std::vector<Bytes> &arrays);
/// Elements [begin, begin + n).
Bytes cut(DType dtype, const Bytes &array, int64_t begin, int64_t n);

} // namespace shardc
