// SPDX-License-Identifier: Apache-2.0
// NCCL with the one rank that fits on one device: memory of its own, registered; calls in graphs; an end in order, and one without.
// Two ranks are the business of nccl_ranks.py and two_gpus.sh.
#include "runtime/comm/Local.h"
#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Event.h"
#include "runtime/cuda/Graph.h"
#include "tests/cuda/OnDevice.h"
#include <chrono>
#include <cstdlib>

namespace shardc::test {
namespace {

using cuda::check;

TEST(CudaNccl, RefusesMulticast) {
  auto group = makeLocalGroup(1);
  setenv("NCCL_NVLS_ENABLE", "1", 1);
  auto refused = cuda::makeNcclCommunicator(*group[0], {1});
  EXPECT_EQ(messageOf(refused.takeError()),
            "NCCL_NVLS_ENABLE: got '1', wanted 0 or nothing: multicast memory is not used here\nhint: unset NCCL_NVLS_ENABLE");
  unsetenv("NCCL_NVLS_ENABLE");
  EXPECT_TRUE(bool(cuda::makeNcclCommunicator(*group[0], {1})));
  EXPECT_STREQ(getenv("NCCL_NVLS_ENABLE"), "0");
}

/// An array that is a space of its own, and a stream.
struct OneRank : testing::Test {
  static constexpr int64_t kElements = 1 << 20;
  std::vector<std::unique_ptr<Communicator>> group = makeLocalGroup(1);
  std::unique_ptr<cuda::DeviceCommunicator> communicator;
  cuda::Stream stream;
  float *array = nullptr;

  void SetUp() override {
    SHARDC_NEEDS_DEVICE();
    communicator = llvm::cantFail(cuda::makeNcclCommunicator(*group[0], {1, 2}));
    void *memory = nullptr;
    ASSERT_EQ(communicator->allocate(&memory, 4 * kElements), cudaSuccess);
    array = static_cast<float *>(memory);
    ASSERT_EQ(messageOf(communicator->connect()), "");
    ASSERT_EQ(messageOf(stream.create(false)), "");
  }
  /// A whole of one slice, gathered, summed in parts and as a whole: as it was.
  llvm::Error exchange() {
    cudaStream_t s = stream.get();
    if (llvm::Error e = communicator->allGather(1, array, array, kElements, DType::F32, s))
      return e;
    if (llvm::Error e = communicator->reduceScatter(2, array, array, kElements, DType::F32, s))
      return e;
    return communicator->allReduce(2, array, 7, DType::F32, s);
  }
};

TEST_F(OneRank, ExchangesInAGraphAndEndsInOrder) {
  std::vector<float> values(kElements), got(kElements);
  for (int64_t i = 0; i < kElements; ++i)
    values[i] = float(i % 1000);
  ASSERT_EQ(cudaMemcpy(array, values.data(), 4 * kElements, cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(messageOf(exchange()), "");
  {
    cuda::Graph graph;
    ASSERT_EQ(messageOf(graph.capture(stream.get(), [&] { return exchange(); })), "");
    for (int run = 0; run < 3; ++run)
      ASSERT_EQ(messageOf(graph.launch(stream.get())), "");
    ASSERT_EQ(messageOf(stream.synchronize()), "");
    ASSERT_EQ(messageOf(communicator->poll()), "");
  }
  ASSERT_EQ(cudaMemcpy(got.data(), array, 4 * kElements, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(got, values);
  communicator->disconnect();
  communicator->free(array);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// The graph is never destroyed: what waits for that is left behind.
TEST_F(OneRank, AbortsInSeconds) {
  auto *graph = new cuda::Graph();
  ASSERT_EQ(messageOf(graph->capture(stream.get(), [&] { return exchange(); })), "");
  ASSERT_EQ(messageOf(graph->launch(stream.get())), "");
  auto start = std::chrono::steady_clock::now();
  communicator->abort();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  (void)communicator.release();
}

} // namespace
} // namespace shardc::test
