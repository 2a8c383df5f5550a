// SPDX-License-Identifier: Apache-2.0
// Launch function of Round.cu. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// to[i] = from[i] rounded to nearest even to a 16-bit float, i < count. Any alignment; memory apart.
struct Round {
  const float *from;
  AnyFloats to;
  long long count;
};
cudaError_t launchRound(const Round &args, cudaStream_t stream);

} // namespace shardc::cuda
