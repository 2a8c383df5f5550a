// SPDX-License-Identifier: Apache-2.0
// What lives in a space at the moment when most bytes live.
#pragma once

#include "ir/plan/Plan.h"
#include <vector>

namespace shardc {

/// More than any memory holds; a space is not larger.
constexpr uint64_t kMaxSpaceBytes = uint64_t(1) << 48;

struct Peak {
  uint64_t bytes = 0;    ///< sum of live sizes, each rounded up to kAlignment
  uint64_t position = 0; ///< the first one at which it is reached (see plan.proto on positions)
  std::vector<uint32_t> buffers; ///< that live then, largest first
};

/// Requires: lifetimes are in order. Buffers of no bytes do not count; of a region, only those that begin in it.
Peak findPeak(const plan::Plan &plan, uint32_t space, const plan::Region *region = nullptr);

/// Bytes as they are counted: rounded up to kAlignment.
uint64_t alignedBytes(const plan::Buffer &buffer);

} // namespace shardc
