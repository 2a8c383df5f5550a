// SPDX-License-Identifier: Apache-2.0
// What communicators of the host ask of the heap: nothing.
#include "tests/runtime/CommunicatorHarness.h"

namespace shardc {

namespace host {
uint64_t allocations(); // KernelHarness
}

namespace {

using CommunicatorMemory = GroupTest;
SHARDC_EACH_GROUP(CommunicatorMemory);

TEST_P(CommunicatorMemory, CallsDoNotAllocate) {
  const int64_t n = 5000;
  std::vector<Bytes> arrays;
  for (unsigned r = 0; r < ranks; ++r)
    arrays.push_back(randomArray(DType::F32, n * ranks, r, 4));
  std::vector<uint64_t> counts(ranks);
  onEachRank(ends, [&](Communicator &end, unsigned r) {
    float *whole = reinterpret_cast<float *>(arrays[r].data());
    char byte = 0;
    bool ok = end.broadcast(0, &byte, 1, 0);
    // All have passed this call before any has passed the last: starting and ending threads is outside.
    uint64_t before = host::allocations();
    for (int i = 0; i < 3; ++i) {
      ok = ok && end.reduceScatter(1, whole, whole + r * n, n, DType::F32);
      ok = ok && end.allGather(1, whole + r * n, whole, n, DType::F32);
      ok = ok && end.allReduce(1, whole, n * ranks, DType::F32);
      ok = ok && end.broadcast(1, whole, n, ranks - 1);
    }
    counts[r] = host::allocations() - before;
    EXPECT_TRUE(end.broadcast(0, &byte, 1, 0) && ok);
  });
  for (uint64_t count : counts)
    EXPECT_EQ(count, 0u);
}

} // namespace
} // namespace shardc
