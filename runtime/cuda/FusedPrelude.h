// SPDX-License-Identifier: Apache-2.0
// What every generated kernel begins with: the meaning of scalar codes (ir/base/ScalarMath.h) and of dropout
// (ir/base/Philox.h) in CUDA C++. Float sums and products are never contracted, so that what is fused with
// what changes no bit.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace shardc::cuda {

llvm::StringRef fusedPrelude();

} // namespace shardc::cuda
