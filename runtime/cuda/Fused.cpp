// SPDX-License-Identifier: Apache-2.0
// fused(x0, x1 ...){body, outputs}: a scalar program over the elements of broadcast operands, by a kernel
// made of it.
#include "runtime/cuda/FusedLaunch.h"
#include "runtime/cuda/GeneratedKernel.h"

namespace shardc::cuda {
namespace {

/// Blocks for each multiprocessor: some times what it holds, so that blocks that end early leave no gaps.
constexpr int64_t kBlocksEach = 32;

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
        c.that(launch.words.size() <= GeneratedKernel::kMaxWords, "number of operands: got too many for one kernel")))
    return c.take();
  if (launch.units == 0)
    return std::make_unique<Nothing>();
  auto kernel = device.compile(fusedSource(program, launch.layout), kFusedName);
  if (!kernel)
    return kernel.takeError();
  const int64_t blocks = std::min((launch.units + kFusedThreads - 1) / kFusedThreads, device.multiprocessors() * kBlocksEach);
  return std::make_unique<GeneratedKernel>(*kernel, std::move(launch.words), unsigned(blocks), kFusedThreads);
}

} // namespace shardc::cuda
