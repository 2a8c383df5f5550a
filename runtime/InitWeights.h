// SPDX-License-Identifier: Apache-2.0
// Starting values for parameters that no file has (--init-weights).
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// Writes elements [first, first + count) of a parameter to `to`. deviation == 0: zeros. Else see WeightsOptions. A draw
/// depends on the seed, the parameter's number in the plan and the element's number alone. Requires: dtype is f32 or f64.
void initialize(const plan::Parameter &parameter, uint64_t number, double deviation, uint64_t seed, int64_t first,
                int64_t count, void *to, DType dtype);

} // namespace shardc
