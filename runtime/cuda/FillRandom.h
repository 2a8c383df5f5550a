// SPDX-License-Identifier: Apache-2.0
// Memory filled with numbers as products meet them. Read by nvcc too: no LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// `count` numbers of a bell curve of deviation 1, the same ones each time: a product of zeros draws less power, and is faster.
cudaError_t fillRandom(void *data, ElementType type, long long count, cudaStream_t stream);

} // namespace shardc::cuda
