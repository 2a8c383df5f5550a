// SPDX-License-Identifier: Apache-2.0
// collective_done(): does nothing; its command's waits do.
#include "runtime/cuda/Kernel.h"
#include "runtime/host/Checks.h"

namespace shardc::cuda {
namespace {

class Nothing final : public Kernel {
public:
  llvm::Error launch(cudaStream_t) override { return llvm::Error::success(); }
};

} // namespace

BoundKernel bindCollectiveDone(const host::Binding &b, Device &) {
  host::Checks c(b);
  if (!c.that(b.in.empty() && b.out.empty(), "operands: got some, wanted none"))
    return c.take();
  return std::make_unique<Nothing>();
}

} // namespace shardc::cuda
