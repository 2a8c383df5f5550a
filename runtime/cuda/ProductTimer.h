// SPDX-License-Identifier: Apache-2.0
// How long one product takes by each of its algorithms, with its operands out of the device's cache.
#pragma once

#include "runtime/cuda/Event.h"
#include "runtime/cuda/LtMatMul.h"

namespace shardc::cuda {

class ProductTimer {
public:
  ProductTimer() = default;
  ProductTimer(const ProductTimer &) = delete;
  ~ProductTimer();
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

  Stream stream_;
  Event begin_, end_;
  void *sweep_ = nullptr; ///< written to so that nothing else stays in the cache; null: there was no memory left for it
  uint64_t sweepBytes_ = 0;
};

} // namespace shardc::cuda
