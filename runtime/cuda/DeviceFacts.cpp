// SPDX-License-Identifier: Apache-2.0
// What can be asked of devices without one rank's executor.
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Executor.h"

namespace shardc::cuda {

std::string whyNoDevice() { return Device::whyNone(); }

int deviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string deviceName() {
  int device = 0;
  cudaDeviceProp properties = {};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess)
    return "";
  return properties.name;
}

uint64_t deviceBytes() {
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? total : 0;
}

uint64_t takenBeyond(uint64_t arenas) {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess || total - free < arenas)
    return 0;
  return total - free - arenas;
}

} // namespace shardc::cuda
