// SPDX-License-Identifier: Apache-2.0
// Launches of device functions, with the driver's answer. All are early (EarlyLaunch.h): each begins with
// awaitStream().
#pragma once

#include "runtime/cuda/Dispatch.cuh"
#include "runtime/cuda/EarlyLaunch.h"
#include <cuda_runtime.h>

namespace shardc::cuda {

__device__ inline void awaitStream() { asm volatile(SHARDC_AWAIT_STREAM ::: "memory"); }

/// In clusters of `cluster` blocks in x; 0: in none. No blocks: nothing is launched.
template <typename... Wanted, typename... Given>
cudaError_t enqueueClusters(void (*kernel)(Wanted...), int cluster, dim3 grid, dim3 block, size_t sharedBytes,
                            cudaStream_t stream, Given... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return cudaSuccess;
  cudaLaunchAttribute attributes[2] = {earlyLaunch()};
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {unsigned(cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = sharedBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = cluster ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, Wanted(arguments)...);
}

template <typename... Wanted, typename... Given>
cudaError_t enqueue(void (*kernel)(Wanted...), dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
                    Given... arguments) {
  return enqueueClusters(kernel, 0, grid, block, sharedBytes, stream, arguments...);
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
