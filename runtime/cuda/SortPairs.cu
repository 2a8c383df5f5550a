// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/SortPairs.h"
#include <cub/device/device_radix_sort.cuh>

namespace shardc::cuda {

cudaError_t sortPairsScratch(int count, size_t &bytes) {
  return cub::DeviceRadixSort::SortPairs(nullptr, bytes, (const int *)nullptr, (int *)nullptr, (const int *)nullptr,
                                         (int *)nullptr, count);
}

cudaError_t sortPairs(void *temporary, size_t bytes, const int *keys, int *sortedKeys, const int *values,
                      int *sortedValues, int count, int bits, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sortedKeys, values, sortedValues, count, 0, bits,
                                         stream);
}

} // namespace shardc::cuda
