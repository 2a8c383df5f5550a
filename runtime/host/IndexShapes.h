// SPDX-License-Identifier: Apache-2.0
// Commands with indices as operand 1, as kernels on host and CUDA devices check them. What indices hold is seen when the kernel runs.
#pragma once

#include "ir/base/Movement.h"
#include "runtime/host/Checks.h"

namespace shardc::host {

// All return false where a check failed; `c` is of `b`.

/// gather_elements(data, indices){axis}; any strides.
bool gatherElementsShape(Checks &c, const Binding &b, int64_t &axis);
/// gather_elements_grad(dy, indices){axis, size}, all but the type of dy; any strides.
bool gatherElementsGradShape(Checks &c, const Binding &b, int64_t &axis, int64_t &size);
/// gather_nd(data, indices){batch_dims}; contiguous.
bool gatherNdShape(Checks &c, const Binding &b, int64_t &batchDims);
/// scatter_elements(data, indices, updates){axis, reduction}; contiguous, the result may be the data.
bool scatterElementsShape(Checks &c, const Binding &b, int64_t &axis, Scatter &reduction);
/// scatter_nd(data, indices, updates){reduction}; contiguous, the result may be the data.
bool scatterNdShape(Checks &c, const Binding &b, Scatter &reduction);

} // namespace shardc::host
