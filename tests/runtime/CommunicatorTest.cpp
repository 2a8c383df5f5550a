// SPDX-License-Identifier: Apache-2.0
// What every communicator computes: bit by bit what a plain loop does, for each type and size, again and
// again.
#include "tests/runtime/CommunicatorHarness.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace shardc {

namespace {

using CommunicatorTest = GroupTest;
SHARDC_EACH_GROUP(CommunicatorTest);

constexpr DType kSummed[] = {DType::F32, DType::F64, DType::F16, DType::BF16,
                             DType::I32, DType::I64, DType::U8};
constexpr int64_t kSizes[] = {0, 1, 2, 7, 1001, 9973};

std::vector<Bytes> arraysOf(DType dtype, int64_t n, unsigned ranks, uint64_t seed) {
  std::vector<Bytes> arrays;
  for (unsigned r = 0; r < ranks; ++r)
    arrays.push_back(randomArray(dtype, n, r, seed));
  return arrays;
}

/// EXPECT_EQ would print the bytes.
void expectSame(const Bytes &got, const Bytes &wanted, const char *what, DType dtype, unsigned rank) {
  EXPECT_TRUE(got == wanted) << what << " of " << wanted.size() << " bytes, " << toString(dtype).str()
                             << ", rank " << rank;
}

TEST_P(CommunicatorTest, KnowsItsPlace) {
  for (unsigned r = 0; r < ranks; ++r) {
    EXPECT_EQ(ends[r]->rank(), r);
    EXPECT_EQ(ends[r]->size(), ranks);
    EXPECT_FALSE(ends[r]->aborted());
    EXPECT_EQ(ends[r]->cause(), "");
  }
}

TEST_P(CommunicatorTest, AllReduceIsThePlainSum) {
  for (DType dtype : kSummed)
    for (int64_t n : kSizes) {
      std::vector<Bytes> arrays = arraysOf(dtype, n, ranks, n);
      Bytes wanted = plainSum(dtype, arrays);
      onEachRank(ends, [&](Communicator &end, unsigned r) {
        EXPECT_TRUE(end.allReduce(1, arrays[r].data(), n, dtype));
        expectSame(arrays[r], wanted, "sum", dtype, r);
      });
    }
}

TEST_P(CommunicatorTest, ReduceScatterIsASliceOfThePlainSum) {
  for (DType dtype : kSummed)
    for (int64_t n : kSizes) {
      const std::vector<Bytes> arrays = arraysOf(dtype, n * ranks, ranks, n + 1);
      Bytes wanted = plainSum(dtype, arrays);
      onEachRank(ends, [&](Communicator &end, unsigned r) {
        Bytes slice(n * byteSize(dtype)), kept = arrays[r];
        EXPECT_TRUE(end.reduceScatter(2, kept.data(), slice.data(), n, dtype));
        expectSame(slice, cut(dtype, wanted, n * r, n), "slice", dtype, r);
        expectSame(kept, arrays[r], "operand", dtype, r);
      });
      onEachRank(ends, [&](Communicator &end, unsigned r) {
        Bytes whole = arrays[r], after = arrays[r], slice = cut(dtype, wanted, n * r, n);
        std::copy(slice.begin(), slice.end(), after.begin() + r * slice.size());
        EXPECT_TRUE(end.reduceScatter(2, whole.data(), whole.data() + r * slice.size(), n, dtype));
        expectSame(whole, after, "in-place slice", dtype, r);
      });
    }
}

TEST_P(CommunicatorTest, AllGatherLaysSlicesEndToEnd) {
  for (unsigned t = 0; t < kNumDTypes; ++t)
    for (int64_t n : kSizes) {
      DType dtype = DType(t);
      const std::vector<Bytes> slices = arraysOf(dtype, n, ranks, n + 2);
      Bytes wanted = endToEnd(slices);
      onEachRank(ends, [&](Communicator &end, unsigned r) {
        Bytes whole(wanted.size(), 0x55), slice = slices[r];
        EXPECT_TRUE(end.allGather(1, slice.data(), whole.data(), n, dtype));
        expectSame(whole, wanted, "whole", dtype, r);
        Bytes again(wanted.size(), 0x55);
        char *own = again.data() + r * slice.size();
        std::copy(slice.begin(), slice.end(), own);
        EXPECT_TRUE(end.allGather(1, own, again.data(), n, dtype));
        expectSame(again, wanted, "whole in place", dtype, r);
      });
    }
}

TEST_P(CommunicatorTest, BroadcastGivesTheRootsBytes) {
  for (int64_t bytes : kSizes)
    for (unsigned root = 0; root < ranks; ++root) {
      const std::vector<Bytes> arrays = arraysOf(DType::U8, bytes, ranks, bytes + root);
      onEachRank(ends, [&](Communicator &end, unsigned r) {
        Bytes data = arrays[r];
        EXPECT_TRUE(end.broadcast(0, data.data(), bytes, root));
        expectSame(data, arrays[root], "broadcast", DType::U8, r);
      });
    }
}

TEST_P(CommunicatorTest, LargeArrays) {
  const int64_t n = 100003;
  std::vector<Bytes> arrays = arraysOf(DType::F32, n * ranks, ranks, 3);
  const Bytes wanted = plainSum(DType::F32, arrays);
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    Bytes whole = arrays[r];
    char *slice = whole.data() + r * n * 4;
    EXPECT_TRUE(end.reduceScatter(2, whole.data(), slice, n, DType::F32));
    EXPECT_TRUE(end.allGather(2, slice, whole.data(), n, DType::F32));
    expectSame(whole, wanted, "reduced and gathered", DType::F32, r);
    EXPECT_TRUE(end.allReduce(2, arrays[r].data(), n * ranks, DType::F32));
    expectSame(arrays[r], wanted, "reduced at once", DType::F32, r);
  });
}

TEST_P(CommunicatorTest, ChannelsAtOnceDoNotDisturbEachOther) {
  constexpr int kCalls = 60;
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    std::vector<std::thread> threads;
    for (unsigned channel = 0; channel < Communicator::kChannels; ++channel)
      threads.emplace_back([&, channel] {
        for (int call = 0; call < kCalls; ++call) {
          int64_t n = 1 + (call * 37 + channel * 11) % 300;
          std::vector<Bytes> arrays = arraysOf(DType::F32, n, ranks, call * 10 + channel);
          const Bytes sum = plainSum(DType::F32, arrays), all = endToEnd(arrays);
          Bytes whole(all.size());
          EXPECT_TRUE(end.allGather(channel, arrays[r].data(), whole.data(), n, DType::F32));
          expectSame(whole, all, "gathered", DType::F32, r);
          EXPECT_TRUE(end.allReduce(channel, arrays[r].data(), n, DType::F32));
          expectSame(arrays[r], sum, "summed", DType::F32, r);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  });
}

TEST_P(CommunicatorTest, RanksMayComeLateAndInAnyOrder) {
  for (unsigned round = 0; round < 6; ++round) {
    std::vector<Bytes> arrays = arraysOf(DType::F64, 33, ranks, round);
    const Bytes wanted = plainSum(DType::F64, arrays);
    onEachRank(ends, [&](Communicator &end, unsigned r) {
      std::this_thread::sleep_for(std::chrono::milliseconds((r * 5 + round * 3) % ranks * 3));
      EXPECT_TRUE(end.allReduce(0, arrays[r].data(), 33, DType::F64));
      expectSame(arrays[r], wanted, "sum", DType::F64, r);
    });
  }
}

// A rank that is done at once changes its operands while others are still on their way out of the call.
TEST_P(CommunicatorTest, OperandsAreFreeAfterACall) {
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    Bytes data, whole(64 * ranks);
    for (uint64_t call = 0; call < 300; ++call) {
      DType dtype = DType::I32;
      std::vector<Bytes> arrays = arraysOf(dtype, 16, ranks, call);
      Bytes wanted = plainSum(dtype, arrays);
      data = arrays[r];
      EXPECT_TRUE(end.allGather(1, data.data(), whole.data(), 16, dtype));
      memset(data.data(), 1, data.size());
      expectSame(whole, endToEnd(arrays), "gathered", dtype, r);
      data = arrays[r];
      EXPECT_TRUE(end.allReduce(1, data.data(), 16, dtype));
      expectSame(data, wanted, "summed", dtype, r);
      memset(data.data(), 2, data.size());
      data = arrays[r];
      EXPECT_TRUE(end.broadcast(1, data.data(), 64, call % ranks));
      expectSame(data, arrays[call % ranks], "sent", dtype, r);
    }
  });
}

} // namespace
} // namespace shardc
