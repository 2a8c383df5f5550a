// SPDX-License-Identifier: Apache-2.0
// What GradNorm.cpp hands to GradNorm.cu. Read by nvcc too: no LLVM header.
#pragma once

#include "ir/base/Workspace.h"
#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// One of the arrays; its first block among those of all.
struct SquaresOf {
  AnyFloats values;
  long long count, firstBlock;
};
struct SumSquaresWork {
  const SquaresOf *arrays; ///< device memory
  int count;
  long long blocks;
  double *sums; ///< of each
};
/// Scratch: squaresWorkspace(count) of each. The cut into blocks, and so the order of each sum, depends on its size alone.
cudaError_t enqueueSumSquares(const SumSquaresWork &, void *scratch, cudaStream_t);

struct Squares {
  const double *data;
  long long count;
};
struct GradScaleWork {
  AnyFloats counter;
  const double *scalars;
  const Squares *squares; ///< device memory
  int arrays;
  double *norm, *scale;
};
cudaError_t enqueueGradScale(const GradScaleWork &, cudaStream_t);

/// The same of gradients of a scaled loss.
struct LossScaleWork {
  GradScaleWork sum;
  double initial, unit;
  double *lossScale, *skipped, *scalars, *state; ///< scalars: a copy of those given, for the optimizers
};
cudaError_t enqueueLossScale(const LossScaleWork &, cudaStream_t);

} // namespace shardc::cuda
