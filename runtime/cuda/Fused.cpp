// SPDX-License-Identifier: Apache-2.0
// fused(x0, x1 ...){body, outputs}: a scalar program over the elements of broadcast operands, by a kernel
// made of it.
#include "runtime/cuda/FusedLaunch.h"
#include "runtime/cuda/Kernel.h"

namespace shardc::cuda {
namespace {

/// Blocks for each multiprocessor: some times what it holds, so that blocks that end early leave no gaps.
constexpr int64_t kBlocksEach = 32;
/// What a kernel's arguments may have.
constexpr size_t kMaxWords = 4000 / 8;

class Fused final : public Kernel {
public:
  Fused(cudaKernel_t kernel, FusedLaunch launch, const Device &device)
      : kernel_(kernel), words_(std::move(launch.words)) {
    const int64_t blocks = (launch.units + kFusedThreads - 1) / kFusedThreads;
    blocks_ = unsigned(std::min(blocks, device.multiprocessors() * kBlocksEach));
  }

  llvm::Error launch(cudaStream_t stream) override {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks_);
    config.blockDim = dim3(kFusedThreads);
    config.stream = stream;
    void *arguments[] = {words_.data()};
    return check(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel_), arguments),
                 "cudaLaunchKernelExC");
  }

private:
  cudaKernel_t kernel_;
  std::vector<uint64_t> words_;
  unsigned blocks_;
};

class Nothing final : public Kernel {
public:
  llvm::Error launch(cudaStream_t) override { return llvm::Error::success(); }
};

} // namespace

BoundKernel bindFused(const host::Binding &b, Device &device) {
  host::Checks c(b);
  ScalarProgram program;
  FusedLaunch launch;
  if (!(readFused(b, c, program) && layOutFused(b, c, program, launch) &&
        c.that(launch.words.size() <= kMaxWords, "number of operands: got too many for one kernel")))
    return c.take();
  if (launch.units == 0)
    return std::make_unique<Nothing>();
  auto kernel = device.compile(fusedSource(program, launch.layout), kFusedName);
  if (!kernel)
    return kernel.takeError();
  return std::make_unique<Fused>(*kernel, std::move(launch), device);
}

} // namespace shardc::cuda
