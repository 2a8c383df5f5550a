// SPDX-License-Identifier: Apache-2.0
// Kernels that are a function of a .cu file and its arguments; how arrays become such arguments, and their checks.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/Walk.h"
#include "runtime/host/Checks.h"

namespace shardc::cuda {

/// `enqueue(stream)` gives a cudaError_t.
template <typename F> class LaunchKernel final : public Kernel {
public:
  LaunchKernel(const char *name, F enqueue) : name_(name), enqueue_(std::move(enqueue)) {}
  llvm::Error launch(cudaStream_t stream) override { return check(enqueue_(stream), name_); }

private:
  const char *name_; ///< for messages
  F enqueue_;
};

template <typename F> std::unique_ptr<Kernel> kernelOf(const char *name, F enqueue) {
  return std::make_unique<LaunchKernel<F>>(name, std::move(enqueue));
}
template <typename Args>
std::unique_ptr<Kernel> launchKernel(cudaError_t (*function)(const Args &, cudaStream_t), const char *name,
                                     const Args &args) {
  return kernelOf(name, [=](cudaStream_t stream) { return function(args, stream); });
}
/// With `scratchBytes` of scratch memory; null for 0.
template <typename Args>
BoundKernel launchKernel(cudaError_t (*function)(const Args &, void *scratch, cudaStream_t), const char *name,
                         const Args &args, const host::Binding &b, Device &device, int64_t scratchBytes = 0) {
  auto scratch = KernelScratch::of(b, device, scratchBytes);
  if (!scratch)
    return scratch.takeError();
  return kernelOf(name, [=, s = *scratch](cudaStream_t stream) { return function(args, s.data(), stream); });
}

/// Several kernels, one after the other. None: nothing to do.
class Sequence final : public Kernel {
public:
  void add(std::unique_ptr<Kernel> kernel) { kernels_.push_back(std::move(kernel)); }
  llvm::Error launch(cudaStream_t stream) override {
    for (auto &kernel : kernels_)
      if (llvm::Error error = kernel->launch(stream))
        return error;
    return llvm::Error::success();
  }

private:
  llvm::SmallVector<std::unique_ptr<Kernel>, 2> kernels_;
};

inline ElementType elementType(DType dtype) { return ElementType(int(dtype)); }
inline AnyFloats anyFloats(const host::Array &a) { return {a.data, elementType(a.dtype)}; }

/// Dims and strides outermost first, as arrays have them.
Walk walkOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> strides);
/// The dims of `a` before its last `rowRank`: where each of its rows starts.
Walk rowWalk(const host::Array &a, size_t rowRank);
/// Is every offset that the walk gives a multiple of `n`?
bool multiples(const Walk &walk, int64_t n);
inline bool aligned(const void *p, int64_t bytes) { return reinterpret_cast<uintptr_t>(p) % uint64_t(bytes) == 0; }
/// Every address of the array that a row of `bytes` starts at is a multiple of `bytes`.
bool aligned(const host::Array &a, int64_t bytes);
/// The widest of 16, 8, 4, 2 bytes, down to `least`, that divides `bytes` and all addresses.
int64_t commonWidth(int64_t least, int64_t bytes, llvm::ArrayRef<const void *> addresses);

/// Any float type.
bool checkFloat(host::Checks &c, const host::Array &a, llvm::StringRef what);
/// `stored`, or f32 beside 16-bit storage: statistics and sums keep their precision.
bool checkStatistic(host::Checks &c, const host::Array &a, DType stored, llvm::StringRef what);

} // namespace shardc::cuda
