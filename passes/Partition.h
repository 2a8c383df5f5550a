// SPDX-License-Identifier: Apache-2.0
// Slices that take a value apart: all its users, end to end along one axis.
#pragma once

#include "ir/graph/Graph.h"
#include <optional>

namespace shardc {

struct Partition {
  int64_t axis = 0;
  llvm::SmallVector<Op *, 4> slices; ///< in order along the axis; at least two
};

/// Of a value whose users of phase `phase` are such slices; nullopt if they are not.
std::optional<Partition> partitionOf(const Value *whole, Phase phase);

} // namespace shardc
