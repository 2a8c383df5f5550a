// SPDX-License-Identifier: Apache-2.0
// The kernel that most `bind` functions give: plain parameters and a function of a .cu file that enqueues.
#pragma once

#include "runtime/cuda/Element.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/host/Checks.h"

namespace shardc::cuda {

/// `scratch` is null where the command asked for none.
template <typename Parameters> using Enqueue = cudaError_t (*)(const Parameters &, void *scratch, cudaStream_t);

template <typename Parameters> class Launcher final : public Kernel {
public:
  Launcher(const char *name, const Parameters &parameters, Enqueue<Parameters> enqueue, KernelScratch scratch)
      : name_(name), parameters_(parameters), enqueue_(enqueue), scratch_(scratch) {}
  llvm::Error launch(cudaStream_t stream) override {
    return check(enqueue_(parameters_, scratch_.data(), stream), name_);
  }

private:
  const char *name_;
  Parameters parameters_;
  Enqueue<Parameters> enqueue_;
  KernelScratch scratch_;
};

/// With `scratchBytes` of scratch memory; none for 0.
template <typename Parameters>
BoundKernel launches(const char *name, const Parameters &parameters, Enqueue<Parameters> enqueue,
                     const host::Binding &b, Device &device, int64_t scratchBytes = 0) {
  auto scratch = KernelScratch::of(b, device, scratchBytes);
  if (!scratch)
    return scratch.takeError();
  return std::make_unique<Launcher<Parameters>>(name, parameters, enqueue, *scratch);
}

static_assert(int(DType::F32) == kF32 && int(DType::F64) == kF64 && int(DType::F16) == kF16 &&
              int(DType::BF16) == kBF16 && int(DType::I32) == kI32 && int(DType::I64) == kI64);
inline Element elementOf(DType dtype) { return Element(int(dtype)); }
inline AnyFloats anyFloats(const host::Array &a) { return {a.data, elementOf(a.dtype)}; }

/// Any float type.
inline bool checkFloat(host::Checks &c, const host::Array &a, llvm::StringRef what) {
  return c.that(isFloat(a.dtype), what.str() + ": type: got " + toString(a.dtype).str() + ", wanted a float type");
}
/// `stored`, or f32 beside 16-bit storage: statistics and sums keep their precision.
inline bool checkStatistic(host::Checks &c, const host::Array &a, DType stored, llvm::StringRef what) {
  return c.that(a.dtype == stored || (a.dtype == DType::F32 && byteSize(stored) == 2),
                what.str() + ": type: got " + toString(a.dtype).str() + ", wanted " + toString(stored).str() +
                    (byteSize(stored) == 2 ? " or f32" : ""));
}
/// Every address of the array that a row of `bytes` starts at is a multiple of `bytes`.
inline bool aligned(const host::Array &a, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(a.data) % bytes)
    return false;
  for (size_t i = 0; i + 1 < a.dims.size(); ++i)
    if (a.dims[i] > 1 && a.strides[i] * byteSize(a.dtype) % bytes)
      return false;
  return true;
}

} // namespace shardc::cuda
