// SPDX-License-Identifier: Apache-2.0
// Finds losses over rows that were selected by a condition: condition -> NonZero -> GatherElements
// -> loss.
#pragma once

#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// A loss of `scores` and `labels` over the rows where `mask` is true: the same as ignoring the
/// others.
struct MaskedLoss {
  std::string scores, labels, mask;
};

/// By the index of the loss node. `producers`: the node that defines a value, by name.
llvm::DenseMap<int, MaskedLoss> findMaskedLosses(const onnx::GraphProto &graph,
                                                 const llvm::StringMap<int> &producers);

} // namespace shardc
