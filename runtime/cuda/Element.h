// SPDX-License-Identifier: Apache-2.0
// Element types as device code knows them: the numbers of DType. Read by nvcc too: no LLVM header.
#pragma once

namespace shardc::cuda {

enum Element : int { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 3, kI32 = 4, kI64 = 5 };

/// An array whose type is known when running only: scalars, rows of statistics.
struct AnyFloats {
  void *data = nullptr;
  Element type = kF32;
};

} // namespace shardc::cuda
