// SPDX-License-Identifier: Apache-2.0
// Kernels that are a launch function of a .cu file and its arguments; and how arrays become such arguments.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/Walk.h"
#include "runtime/host/Checks.h"

namespace shardc::cuda {

template <typename Args> class LaunchKernel final : public Kernel {
public:
  using Function = cudaError_t (*)(const Args &, cudaStream_t);
  LaunchKernel(Function function, const char *name, const Args &args)
      : function_(function), name_(name), args_(args) {}
  llvm::Error launch(cudaStream_t stream) override { return check(function_(args_, stream), name_); }

private:
  Function function_;
  const char *name_; ///< of the launch function, for messages
  Args args_;
};

template <typename Args>
std::unique_ptr<Kernel> launchKernel(cudaError_t (*function)(const Args &, cudaStream_t), const char *name,
                                     const Args &args) {
  return std::make_unique<LaunchKernel<Args>>(function, name, args);
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

/// Dims and strides outermost first, as arrays have them.
Walk walkOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> strides);
/// The dims of `a` before its last `rowRank`: where each of its rows starts.
Walk rowWalk(const host::Array &a, size_t rowRank);
/// Is every offset that the walk gives a multiple of `n`?
bool multiples(const Walk &walk, int64_t n);
inline bool aligned(const void *p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % uint64_t(bytes) == 0;
}
/// The widest of 16, 8, 4, 2 bytes, down to `least`, that divides `bytes` and all addresses.
int64_t commonWidth(int64_t least, int64_t bytes, llvm::ArrayRef<const void *> addresses);
/// f32, f64, f16 or bf16.
bool floating(host::Checks &c, const host::Array &a);

} // namespace shardc::cuda
