// SPDX-License-Identifier: Apache-2.0
// What the kernels with an index operand share when binding.
#pragma once

#include "runtime/cuda/GatherLaunch.h"
#include "runtime/cuda/Launch.h"
#include "runtime/host/IndexShapes.h"

namespace shardc::cuda {

/// Operand 1 of the command. Requires: it is present, i32 or i64.
inline IndexOperand indexOperand(const host::Binding &b, Device &device) {
  return {b.in[1].data, elementType(b.in[1].dtype), device.fault(), device.faultSite(b.place)};
}

/// `a` without the dim `axis`.
inline host::Array without(const host::Array &a, int64_t axis) {
  host::Array b = a;
  b.dims.erase(b.dims.begin() + axis);
  b.strides.erase(b.strides.begin() + axis);
  return b;
}

} // namespace shardc::cuda
