// SPDX-License-Identifier: Apache-2.0
// Launches of device functions, with the driver's answer.
#pragma once

#include "runtime/cuda/Dispatch.cuh"
#include <cuda_runtime.h>

namespace shardc::cuda {

/// Blocks beside each other in x; none: nothing is launched.
template <typename... Wanted, typename... Given>
cudaError_t enqueue(void (*kernel)(Wanted...), dim3 grid, int threads, size_t sharedBytes, cudaStream_t stream,
                    Given... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return cudaSuccess;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = sharedBytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, Wanted(arguments)...);
}

/// Dynamic shared memory that a block of an H200 may have, with no static one beside it.
constexpr int kMostShared = 227 << 10;

/// For each kernel that wants more than 48 KiB of dynamic shared memory, when binding.
template <typename... Wanted> cudaError_t allowShared(void (*kernel)(Wanted...)) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
}

/// Blocks for `items` at `each` a block.
inline unsigned blocksFor(long long items, long long each) { return unsigned((items + each - 1) / each); }

} // namespace shardc::cuda
