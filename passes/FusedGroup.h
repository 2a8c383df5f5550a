// SPDX-License-Identifier: Apache-2.0
// Ops that become one `fused` or `fused_rows` op.
#pragma once

#include "passes/FusedBody.h"
#include "passes/RowForm.h"

namespace shardc {

struct FusedGroup {
  llvm::SmallVector<Op *, 4> ops; ///< in order
  Dims dims;                      ///< what all of them go over
  int64_t axis = -1;              ///< rows begin there; -1: there are none
  unsigned first = 0, last = 0;   ///< positions
  unsigned due = 0;               ///< position of the last one that others wait for
};

/// What a value is in the group that makes it.
RowKind kindOf(const Value *value);
/// What members read and none of them makes, each once.
llvm::SmallVector<FusedInput> inputsOf(const FusedGroup &group);
/// Replaces the members, which stand side by side, by one op.
void emitGroup(Graph &graph, const FusedGroup &group);

} // namespace shardc
