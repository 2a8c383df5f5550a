// SPDX-License-Identifier: Apache-2.0
// Reading index operands on the device.
#pragma once

#include "runtime/cuda/IndexOperand.h"
#include "runtime/cuda/Numbers.cuh"

namespace shardc::cuda {

/// Index i of the operand in [0, limit); one that is out of range is reported and read as 0. With limit 0 every one is.
SHARDC_DEVICE long long wrapped(const IndexOperand &indices, long long i, long long limit) {
  return wrappedIndex(indices.fault, indices.site, loadIndex(indices.data, indices.type, i), limit);
}

} // namespace shardc::cuda
