// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/Probe.h"

namespace shardc::cuda {

static __global__ void nothing() {}

cudaError_t probeKernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, nothing);
}

} // namespace shardc::cuda
