// SPDX-License-Identifier: Apache-2.0
// Checks that attention's and relative_attention's bind functions share.
#pragma once

#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Launch.h"

namespace shardc::cuda {

HeadsView headsView(const host::Array &);
Dims outDims(const AttentionWork &);
/// Operands q, k, v from `first` on, bias and mask by position (one beyond the last: none), and the attributes.
bool checkAttentionOperands(host::Checks &, const host::Binding &, unsigned first, unsigned biasAt, unsigned maskAt,
                            AttentionWork &);
bool checkAttentionLse(host::Checks &, const host::Array &lse, DType stored, AttentionWork &);
/// The bytes of shared memory that a block wants.
bool checkAttentionShared(host::Checks &, int bytes, const AttentionWork &);

} // namespace shardc::cuda
