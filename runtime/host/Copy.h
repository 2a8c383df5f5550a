// SPDX-License-Identifier: Apache-2.0
// Copies between strided arrays, as a part of other kernels.
#pragma once

#include "runtime/host/Kernel.h"

namespace shardc::host {

/// y = x. Requires: equal dims and dtypes, memory apart.
std::unique_ptr<Kernel> makeCopy(const Array &x, const Array &y);

} // namespace shardc::host
