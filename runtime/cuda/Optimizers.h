// SPDX-License-Identifier: Apache-2.0
// What Optimizers.cpp hands to Optimizers.cu. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

enum class Optimizer : int { AdamW, Adam, Sgd };

struct OptimizerWork {
  Optimizer kind;
  void *param, *first, *second; ///< states of the type of the parameters: m, v; momentum (null: none), -
  ElementType type;                 ///< f32 or f64
  AnyFloats rounded; ///< a copy of the updated parameters in 16 bits, or null
  const void *grad;
  ElementType gradType;
  const double *gradScale, *scalars;
  long long count, decayEnd; ///< elements [0, decayEnd) of the bucket decay
  bool sliced;               ///< the arrays are slice scalars[kRank] of the bucket
  bool wide;                 ///< four elements of any of the arrays may be loaded at once
};
cudaError_t enqueueOptimizer(const OptimizerWork &, void *scratch, cudaStream_t);

} // namespace shardc::cuda
