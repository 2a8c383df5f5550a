// SPDX-License-Identifier: Apache-2.0
// Graphs without the memsets of memory that is cleared before they are launched.
#include "runtime/cuda/Graph.h"
#include "runtime/cuda/Event.h"
#include "tests/cuda/OnDevice.h"

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr size_t kPart = 256;
using Bytes = std::vector<char>;

Bytes whatLiesIn(const DeviceMemory &memory, size_t bytes) {
  Bytes all(bytes);
  memory.get(all.data());
  return all;
}

/// Copies parts 0, 1, 2 of `from` to `to`, each cleared right before; part 1 begins nowhere near `cleared`.
struct CopyOfParts {
  const Bytes ones = Bytes(3 * kPart, 1);
  DeviceMemory from{ones.data(), ones.size()}, to{nullptr, ones.size()}, other{ones.data(), kPart};
  cuda::Stream stream;
  cuda::Graph graph;

  char *part(int i) {
    return i == 1 ? static_cast<char *>(other.data()) : static_cast<char *>(from.data()) + i * kPart;
  }
  llvm::Error enqueue() {
    for (int i = 0; i < 3; ++i) {
      if (llvm::Error e = cuda::check(cudaMemsetAsync(part(i), 0, kPart, stream.get()), "cudaMemsetAsync"))
        return e;
      if (llvm::Error e = cuda::check(cudaMemcpyAsync(static_cast<char *>(to.data()) + i * kPart, part(i),
                                                      kPart, cudaMemcpyDeviceToDevice, stream.get()),
                                      "cudaMemcpyAsync"))
        return e;
    }
    return cuda::check(cudaMemsetAsync(part(2), 0, kPart, stream.get()),
                       "cudaMemsetAsync"); // with nothing behind it
  }
  llvm::Error capture(size_t cleared) {
    return graph.capture(stream.get(), [&] { return enqueue(); },
                         {static_cast<char *>(from.data()), cleared});
  }
  llvm::Error launch() {
    if (llvm::Error e = graph.launch(stream.get()))
      return e;
    return stream.synchronize();
  }
};

Bytes parts(char a, char b, char c) {
  Bytes all(3 * kPart);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i < kPart ? a : i < 2 * kPart ? b : c;
  return all;
}

TEST(CudaGraph, clearsNotWhatIsClearedBefore) {
  SHARDC_NEEDS_DEVICE();
  CopyOfParts c;
  llvm::cantFail(c.stream.create(/*urgent=*/false));
  ASSERT_FALSE(llvm::errorToBool(c.capture(3 * kPart)));
  ASSERT_FALSE(llvm::errorToBool(c.launch()));
  EXPECT_EQ(whatLiesIn(c.to, 3 * kPart), parts(1, 0, 1));
  EXPECT_EQ(whatLiesIn(c.from, 3 * kPart), c.ones);
  ASSERT_EQ(cudaMemset(c.from.data(), 0, 3 * kPart), cudaSuccess);
  ASSERT_FALSE(llvm::errorToBool(c.launch()));
  EXPECT_EQ(whatLiesIn(c.to, 3 * kPart), parts(0, 0, 0));
}

TEST(CudaGraph, clearsWhatElseItIsTold) {
  SHARDC_NEEDS_DEVICE();
  CopyOfParts c;
  llvm::cantFail(c.stream.create(/*urgent=*/false));
  ASSERT_FALSE(llvm::errorToBool(c.capture(kPart))); // not the last part
  ASSERT_FALSE(llvm::errorToBool(c.launch()));
  EXPECT_EQ(whatLiesIn(c.to, 3 * kPart), parts(1, 0, 0));
}

} // namespace
