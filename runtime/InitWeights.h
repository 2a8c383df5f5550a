// SPDX-License-Identifier: Apache-2.0
// Starting values for parameters that no file has (--init-weights).
#pragma once

#include "runtime/Safetensors.h"

namespace shardc {

void initializeZero(const ArrayToWrite &parameter);

/// deviation == 0: zeros. Else see WeightsOptions. A draw depends on the seed, the parameter's
/// number in the plan and the element's number alone. Requires: f32 or f64 memory that may be
/// written.
void initialize(const ArrayToWrite &parameter, uint64_t number, double deviation, uint64_t seed);

} // namespace shardc
