// SPDX-License-Identifier: Apache-2.0
// What must hold in a graph, at every pass and at its level. A violation is a bug of ours, not of the user.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Structure: operands defined before use, use lists exact, types as inferred, names unique, phases in order
/// (forward, backward, update), parameters have their `param` op. Level: see the table in ir/README.md.
llvm::Error verify(const Graph &graph);

} // namespace shardc
