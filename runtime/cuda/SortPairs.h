// SPDX-License-Identifier: Apache-2.0
// Stable sort of (key, value) pairs by key. Read by nvcc too: no LLVM header.
#pragma once

#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// Bytes of temporary memory that `sortPairs` of `count` pairs wants. Requires: a device.
cudaError_t sortPairsScratch(int count, size_t &bytes);
/// Of keys in [0, 2^bits). Inputs and outputs are apart.
cudaError_t sortPairs(void *temporary, size_t bytes, const int *keys, int *sortedKeys, const int *values,
                      int *sortedValues, int count, int bits, cudaStream_t stream);

} // namespace shardc::cuda
