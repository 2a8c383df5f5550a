// SPDX-License-Identifier: Apache-2.0
// How long one product takes by each of its algorithms, with its operands out of the device's cache.
#pragma once

#include "runtime/cuda/Event.h"
#include "runtime/cuda/LtMatMul.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc::cuda {

class ProductTimer {
public:
  /// `arena`: memory of the device that the operands may lie in; all of it may be overwritten.
  explicit ProductTimer(llvm::MutableArrayRef<char> arena) : arena_(arena) {}
  /// Once, before anything else.
  llvm::Error open();

  /// The library's first answer, unless another is clearly faster. Overwrites all that the operands name; the product uses
  /// some algorithm afterwards. Errors: of the device.
  llvm::Expected<cublasLtMatmulAlgo_t> fastest(LtProduct &product, const Operands &operands, void *workspace);

private:
  llvm::Error fill(const Problem &problem, const Operands &operands);
  /// Microseconds of `count` runs, the shortest first.
  llvm::Expected<std::vector<double>> timesOf(const LtProduct &product, const Operands &operands, void *workspace,
                                              int count);

  llvm::MutableArrayRef<char> arena_;
  Stream stream_;
  Event begin_, end_;
  uint64_t cacheBytes_ = 0;
};

} // namespace shardc::cuda
