// SPDX-License-Identifier: Apache-2.0
// What CUDA C++ has no plain words for.
#pragma once

#include <cuda_runtime.h>

namespace shardc::cuda {

/// The dynamic shared memory of the block, aligned to 16 bytes.
template <typename T> __device__ inline T *dynamicShared() {
  extern __shared__ uint4 shardcDynamicShared[];
  return reinterpret_cast<T *>(shardcDynamicShared);
}

} // namespace shardc::cuda
