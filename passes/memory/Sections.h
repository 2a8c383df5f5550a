// SPDX-License-Identifier: Apache-2.0
// Moments of a packing problem, and the lower bound that they give.
#pragma once

#include "passes/memory/Packing.h"

namespace shardc {

/// The largest sum of bytes that live at once: no packing is lower. O(n log n).
uint64_t peakOf(llvm::ArrayRef<PackItem> items);

/// Time, cut into the intervals between one begin or end and the next. Only those that a begin
/// starts and an end closes are kept: what lives at any other moment lives together in one of these
/// as well.
struct Sections {
  explicit Sections(llvm::ArrayRef<PackItem> items);

  size_t size() const { return bytes.size(); }

  std::vector<uint64_t> bytes;      ///< by section: what lives in it
  std::vector<uint32_t> begin, end; ///< by item: the half-open range of its sections, never empty
};

} // namespace shardc
