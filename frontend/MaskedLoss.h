// SPDX-License-Identifier: Apache-2.0
// Finds losses over rows that were selected by a condition: condition -> NonZero -> GatherElements
// -> loss.
#pragma once

#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class Emitter;
class Value;

/// A loss of `scores` and `labels` over the rows where `mask` is true: the same as ignoring the
/// others.
struct MaskedLoss {
  std::string scores, labels, mask;
};

/// By the index of the loss node.
llvm::DenseMap<int, MaskedLoss> findMaskedLosses(const onnx::GraphProto &graph);

/// For loss node `node`: rows that were not selected get the label that it ignores.
Value *maskedLabels(Emitter &b, const onnx::NodeProto &node, Value *labels, Value *mask);

} // namespace shardc
