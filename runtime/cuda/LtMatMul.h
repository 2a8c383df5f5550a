// SPDX-License-Identifier: Apache-2.0
// One product of matrices by cuBLASLt: from row-major terms to the library's, and the algorithm that runs it.
#pragma once

#include "ir/base/DType.h"
#include "runtime/cuda/Device.h"
#include <optional>

namespace shardc::cuda {

/// What every stream's scratch memory holds at least once a product is bound to it.
constexpr int64_t kBlasWorkspace = 32 << 20;

/// d[m, n] = a[m, k] b[k, n] + beta c, for `batch` matrices a stride apart. Element (i, j) of `a` lies at i * row + j *
/// column, of which one is 1; c and d have rows of n elements. The bits depend on this and the alignments alone.
struct Problem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t rowA = 0, columnA = 0, rowB = 0, columnB = 0;
  int64_t strideA = 0, strideB = 0, strideY = 0; ///< between batches
  DType in = DType::F32, out = DType::F32;
  bool accumulate = false;                        ///< beta 1
  bool tf32 = false;                              ///< products of f32 may be rounded to TF32
  unsigned alignA = 16, alignB = 16, alignY = 16; ///< bytes that divide the addresses of all that run as this problem
};

/// A problem ready to run on any pointers that are aligned as it says.
class LtProduct {
public:
  /// Errors: the layouts or types are none that the library takes. `place` begins the message.
  static llvm::Expected<LtProduct> of(const Problem &problem, Device &device, llvm::StringRef place);
  LtProduct(LtProduct &&other);
  ~LtProduct();

  /// c may be d; not read unless the problem accumulates. Requires: kBlasWorkspace bytes of workspace, 256-byte
  /// aligned.
  llvm::Error run(const void *a, const void *b, const void *c, void *d, void *workspace, cudaStream_t stream) const;

private:
  LtProduct() = default;
  llvm::Error describe(const Problem &problem);
  llvm::Error choose(const Problem &problem);

  cublasLtHandle_t blas_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr,
                         result_ = nullptr; ///< b, a, y: the library is column-major
  cublasLtMatmulAlgo_t algorithm_ = {};
  bool accumulate_ = false, wide_ = false;
};

} // namespace shardc::cuda
