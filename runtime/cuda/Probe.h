// SPDX-License-Identifier: Apache-2.0
// Were the kernels of this program compiled for the current device?
#pragma once

#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// An error of the driver where they were not.
cudaError_t probeKernels();

} // namespace shardc::cuda
