// SPDX-License-Identifier: Apache-2.0
// Gradient of the two scatters, given how to gather and scatter by their indices.
#pragma once

#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc {

/// Operands 0 (data) and 2 (updates) get gradients. `gather(x)` reads x where the updates go;
/// `scatter(x, updates, reduction)` is the op itself on other values.
/// None: places that are written twice have no defined value, hence no gradient rule of their own.
void scatterGradient(
    GradContext &g, llvm::function_ref<Value *(Value *)> gather,
    llvm::function_ref<Value *(Value *, Value *, llvm::StringRef)> scatter);

} // namespace shardc
