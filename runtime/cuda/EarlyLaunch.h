// SPDX-License-Identifier: Apache-2.0
// Early launches: the blocks of a kernel may come onto the device while what is before it in its stream still
// ends. Each kernel of ours is launched so, and waits for its stream itself: with all of its threads, before
// anything else, also where it then has nothing to do, since what is behind it waits for nothing but it.
#pragma once

#include <cuda_runtime_api.h>

/// Until what is before the kernel in its stream is done, and what that wrote can be seen: PTX, of kernels
/// that nvcc compiles ahead and of generated ones.
#define SHARDC_AWAIT_STREAM "griddepcontrol.wait;"

namespace shardc::cuda {

inline cudaLaunchAttribute earlyLaunch() {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  return early;
}

} // namespace shardc::cuda
