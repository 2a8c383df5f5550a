// SPDX-License-Identifier: Apache-2.0
// Attention's gradients of q, k and v as parts of one array (attribute `joined`): for kernels, which take strides.
#pragma once

#include "runtime/host/Kernel.h"

namespace shardc::host {

/// The binding with results dq, dk and dv, each [B, S, H, D] with strides, whatever arrays they are parts of. Where
/// attribute and shapes do not agree it is as given, and fails the checks of the kernel.
Binding splitHeads(const Binding &binding);

} // namespace shardc::host
