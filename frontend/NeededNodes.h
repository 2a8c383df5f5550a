// SPDX-License-Identifier: Apache-2.0
// Which nodes of a model the wanted outputs need: no other is imported.
#pragma once

#include "frontend/MaskedLoss.h"
#include "llvm/ADT/StringSet.h"
#include <vector>

namespace shardc {

struct NeededNodes {
  std::vector<bool> nodes; ///< of the top-level graph
  llvm::StringSet<> names; ///< values that those read, and wanted outputs
};

/// For the output of that name, "": for all. A loss over selected rows (`masked`) needs what it is replaced by. Requires: sorted nodes.
NeededNodes findNeededNodes(const onnx::GraphProto &graph, llvm::StringRef output,
                            const llvm::DenseMap<int, MaskedLoss> &masked);

} // namespace shardc
