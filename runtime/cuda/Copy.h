// SPDX-License-Identifier: Apache-2.0
// Copies between layouts: what copy, concat and pad do.
#pragma once

#include "runtime/cuda/Launch.h"

namespace shardc::cuda {

/// A kernel that copies x to y. Requires: equal dims, types of equal width, memory apart.
std::unique_ptr<Kernel> makeCopy(const host::Array &x, const host::Array &y);
/// Plain bytes.
std::unique_ptr<Kernel> makePlainCopy(const void *x, void *y, int64_t bytes);

} // namespace shardc::cuda
