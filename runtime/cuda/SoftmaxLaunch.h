// SPDX-License-Identifier: Apache-2.0
// Launch functions of Softmax.cu. Rows lie where `...Rows` says, their elements side by side; results are
// row-major. `vectors`: rows start at multiples of 16 bytes and their length is one too.
#pragma once

#include "runtime/cuda/ElementType.h"
#include "runtime/cuda/Walk.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

/// y = softmax(x), or its logarithm; y may be x. x and y have a type each: f64, or any others.
struct SoftmaxArgs {
  const void *x;
  void *y;
  ElementType xType, yType;
  bool log, vectors;
  long long rows, length;
  Walk xRows;
};
cudaError_t launchSoftmax(const SoftmaxArgs &args, cudaStream_t stream);

/// dx = y (dy - sum dy y); dx may be dy or y.
struct SoftmaxGradArgs {
  const void *dy, *y;
  void *dx;
  ElementType type;
  bool vectors;
  long long rows, length;
  Walk dyRows, yRows;
};
cudaError_t launchSoftmaxGrad(const SoftmaxGradArgs &args, cudaStream_t stream);

} // namespace shardc::cuda
