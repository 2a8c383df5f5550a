// SPDX-License-Identifier: Apache-2.0
// What a product adds and applies, by kernels of their own: for those whose library algorithms do neither. Read by nvcc too: no
// LLVM header.
#pragma once

#include "runtime/cuda/ElementType.h"
#include <cuda_runtime_api.h>

namespace shardc::cuda {

struct ProductParts {
  AnyFloats y, bias, c; ///< y: `count` elements, rows of `columns`; bias, c: data is null where there is none; c may be y
  long long count, columns;
};
/// y = bias + c.
cudaError_t enqueueBefore(const ProductParts &, cudaStream_t);
/// y = y > 0 ? y : 0; NaN stays.
cudaError_t enqueueRelu(const ProductParts &, cudaStream_t);

} // namespace shardc::cuda
