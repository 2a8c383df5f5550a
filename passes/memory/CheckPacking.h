// SPDX-License-Identifier: Apache-2.0
// Judges a packing from its definition; shares nothing with the packer.
#pragma once

#include "passes/memory/Packing.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Sizes count rounded up to the alignment. Wants an offset for each item, a multiple of the
/// alignment; no two items that live together over one another; the height and the lower bound that
/// the result says, and no height below the bound. The error names the first items, in order of
/// time, where that is not so. O(n log n).
llvm::Error checkPacking(llvm::ArrayRef<PackItem> items, uint64_t alignment,
                         const PackResult &result);

} // namespace shardc
