// SPDX-License-Identifier: Apache-2.0
// Launch function of ColumnSums.cu: several sums over rows in one launch, in a fixed order. Read by nvcc too.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// y[i] = sum over r < rows of x[r * columns + i].
struct ColumnSum {
  const void *x;
  AnyFloats y;
  int rows, columns;
  int firstBlock; ///< of the launch: its blocks have kColumnSumTile columns each
};

constexpr int kColumnSumTile = 32, kMostColumnSums = 64;
struct ColumnSumsArgs {
  ColumnSum sums[kMostColumnSums];
  int count, blocks;
  bool isDouble; ///< all x
};
cudaError_t launchColumnSums(const ColumnSumsArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
