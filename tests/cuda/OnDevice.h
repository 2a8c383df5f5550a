// SPDX-License-Identifier: Apache-2.0
// The device that tests share, one op on it, and what tests ask of an executor.
#pragma once

#include "runtime/Executor.h"
#include "runtime/cuda/Kernel.h"
#include "tests/ops/PrepareKernel.h"
#include "gtest/gtest.h"

namespace shardc::test {

/// The first device, opened once; null where there is none.
cuda::Device *sharedDevice();

/// Tests that need a device: skipped, by name, where there is none.
#define SHARDC_NEEDS_DEVICE()                                                                                          \
  if (!shardc::test::sharedDevice())                                                                                   \
  GTEST_SKIP() << "no CUDA device: " << shardc::cuda::Device::whyNone()

/// `bytes` of device memory, with a copy of `from` (null: zeros). Freed at the end.
class DeviceMemory {
public:
  DeviceMemory(const void *from, size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  void *data() const { return data_; }
  void get(void *to) const;

private:
  void *data_ = nullptr;
  size_t bytes_;
};

/// "" if nothing is wrong.
std::string messageOf(llvm::Error error);

/// The first n elements of a buffer, which holds f32.
std::vector<float> floats(Executor &executor, uint32_t buffer, int64_t n);

/// Launches a kernel of the shared device once, on a stream of its own, and waits. An error if it raised a fault.
llvm::Error launchAndWait(cuda::Kernel &kernel);

/// Runs an op by its CUDA kernel, pointwise ones as a fused group of one, on memory as prepareKernel lays it out. Twice, and an
/// error if the two results differ in a bit, or if the kernel raised a fault. Ops without a kernel run by the reference.
llvm::Expected<llvm::SmallVector<Tensor, 1>> runOnDevice(const Op &op, llvm::ArrayRef<const Tensor *> operands,
                                                         llvm::ArrayRef<double> scalars, bool strided);

} // namespace shardc::test
