// SPDX-License-Identifier: Apache-2.0
// What torch.onnx.export(dynamo=True) writes about the origin of nodes and parameters.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
} // namespace onnx

namespace shardc {

/// Which placeholders of the exported program are parameters: `p_m_shared_weight` ->
/// "m.shared.weight".
class TorchSignature {
public:
  /// Empty where the file has no signature.
  explicit TorchSignature(const onnx::ModelProto &model);

  bool empty() const { return parameters_.empty(); }
  /// Dotted name of a placeholder that is a parameter, or "".
  llvm::StringRef parameter(llvm::StringRef placeholder) const {
    auto it = byPlaceholder_.find(placeholder);
    return it == byPlaceholder_.end() ? llvm::StringRef() : parameters_[it->second];
  }
  bool hasParameter(llvm::StringRef name) const { return byName_.contains(name); }
  /// Dotted names, in the order of the file.
  const std::vector<std::string> &parameters() const { return parameters_; }

private:
  std::vector<std::string> parameters_;
  llvm::StringMap<size_t> byPlaceholder_, byName_;
};

/// The FX node that an ONNX node comes from: `target=torch.ops.aten.linear.default`, and the
/// tensors among its arguments in order, without '%'. Refers to the node's text.
struct FxNode {
  llvm::StringRef target;
  llvm::SmallVector<llvm::StringRef, 4> tensors;
};
std::optional<FxNode> fxNode(const onnx::NodeProto &node);

/// padding_idx of the embedding that the node was in PyTorch; nullopt where there is none, or the file does not tell.
std::optional<int64_t> paddingRow(const onnx::NodeProto &node);

/// Did the attention that the node is part of have dropout in PyTorch? The exporter drops it.
bool hadDropout(const onnx::NodeProto &node);

/// label_smoothing of the loss that the node was in PyTorch, as it was written there; "" where there is none. The exporter drops it.
llvm::StringRef labelSmoothing(const onnx::NodeProto &node);

/// Dotted path of the module that a node belongs to, from its scopes (dynamo) or its name
/// "/m/encoder/q/MatMul" (TorchScript); "" where neither tells.
std::string modulePath(const onnx::NodeProto &node);

} // namespace shardc
