// SPDX-License-Identifier: Apache-2.0
// adamw, adam (param, grad, m, v, grad_scale, scalars){decay_end, ranks} and sgd (param, grad, momentum?, grad_scale, scalars){...}
// over flat arrays, in place, as kernels on host and CUDA devices check them.
#pragma once

#include "runtime/host/Checks.h"

namespace shardc::host {

/// Which elements decay: those of the bucket before `decayEnd`. `sliced`: the arrays are one rank's slice of it.
struct UpdateShape {
  int64_t decayEnd = 0;
  bool sliced = false;
  bool rounds = false; ///< the last result is a copy of the parameters in fewer bits
};

/// All but the types of the gradient and of the rounded parameters. `states`: m and v, or momentum; `required` says whether they
/// must be there. Returns false where a check failed; `c` is of `b`.
bool updateShape(Checks &c, const Binding &b, unsigned states, bool required, UpdateShape &shape);

} // namespace shardc::host
