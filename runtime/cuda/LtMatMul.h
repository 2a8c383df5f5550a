// SPDX-License-Identifier: Apache-2.0
// One product of matrices by cuBLASLt: from row-major terms to the library's, and the algorithm that runs it.
#pragma once

#include "ir/base/DType.h"
#include "ir/base/Workspace.h"
#include "runtime/cuda/Device.h"
#include <string>
#include <vector>

namespace shardc::cuda {

/// d[m, n] = act(a[m, k] b[k, n] + bias + c), for `batch` matrices a stride apart, rounded once. Element (i, j) of `a` lies
/// at i * row + j * column, of which one is 1; c and d have rows of n elements, bias has one element a column. The bits
/// depend on this and on the algorithm alone.
struct Problem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t rowA = 0, columnA = 0, rowB = 0, columnB = 0;
  int64_t strideA = 0, strideB = 0, strideY = 0; ///< between batches
  DType in = DType::F32, out = DType::F32;       ///< bias is of type `in`, c and d of `out`
  bool addsC = false, addsBias = false, relu = false;
  bool inPlace = false;                           ///< c is d
  bool tf32 = false;                              ///< products of f32 may be rounded to TF32
  unsigned alignA = 16, alignB = 16, alignY = 16; ///< bytes that divide the addresses of all that run as this problem

  /// All of the above, in one line.
  std::string describe() const;
};

/// c may be d, and is not read unless the problem adds it.
struct Operands {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void *d = nullptr;
};

/// A problem ready to run on any pointers that are aligned as it says; the bias is always the same.
class LtProduct {
public:
  /// With the library's first answer. Errors: the layouts or types are none that the library takes; `place` begins the
  /// message.
  static llvm::Expected<LtProduct> of(const Problem &problem, const void *bias, Device &device, llvm::StringRef place);
  LtProduct(LtProduct &&other);
  ~LtProduct();

  /// Requires: as many bytes of workspace, 256-byte aligned, that are enough for the algorithm.
  llvm::Error run(const Operands &operands, void *workspace, cudaStream_t stream,
                  int64_t bytes = kProductWorkspace) const;

  const Problem &problem() const { return problem_; }
  /// At most `most` deterministic ones that the workspace is enough for, the most promising first: never none.
  llvm::Expected<std::vector<cublasLtMatmulAlgo_t>> algorithms(int most) const;
  /// Can that run this problem in the workspace? It may be any bytes.
  bool takes(const cublasLtMatmulAlgo_t &algorithm) const;
  /// Bytes of workspace that it uses as it is now.
  llvm::Expected<int64_t> workspaceBytes() const;
  /// Requires: takes(algorithm).
  void use(const cublasLtMatmulAlgo_t &algorithm) { algorithm_ = algorithm; }

private:
  LtProduct() = default;
  llvm::Error open(const void *bias);
  /// Of the library's answers where so many bytes of workspace are offered, those that kProductWorkspace is enough for.
  llvm::Expected<std::vector<cublasLtMatmulAlgo_t>> algorithmsFor(uint64_t offered, int most) const;
  llvm::Expected<cublasLtMatmulAlgo_t> firstAlgorithm() const;

  Problem problem_;
  /// With c in d's place the library may round the product, and add it to memory: not with factors that it cannot see.
  bool hidesFactors() const { return problem_.addsC && problem_.inPlace && byteSize(problem_.out) == 2; }

  cublasLtHandle_t blas_ = nullptr;
  const float *one_ = nullptr; ///< device memory
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr,
                         result_ = nullptr; ///< b, a, y: the library is column-major
  cublasLtMatmulAlgo_t algorithm_ = {};
};

} // namespace shardc::cuda
