// SPDX-License-Identifier: Apache-2.0
// Which parameter of the PyTorch model an input of an ONNX node reads, by everything that the two
// exporters leave behind.
#pragma once

#include "frontend/TensorSource.h"
#include "frontend/TorchMetadata.h"
#include "onnx/onnx-ml.pb.h"
#include <optional>
#include <string>

namespace shardc {
class OnnxModel;

/// Input `input` of `node` reads the float initializer `tensor`, perhaps through Identity nodes.
struct ParameterRead {
  const onnx::NodeProto *node = nullptr;
  int nodeIndex = 0; ///< in the top-level graph; -1: in a subgraph
  int input = 0;
  const onnx::TensorProto *tensor = nullptr;
  const TensorSource *source = nullptr;
  int root = 0; ///< number of the initializer

  /// What the node's input is called: the initializer, or an Identity's output.
  llvm::StringRef valueName() const { return node->input(input); }
};

struct ParameterName {
  std::string name;
  bool told =
      false; ///< the file says so; else guessed from the node's path, or the initializer's own name
  bool transposed = false; ///< the initializer is the transpose of PyTorch's weight
};

/// "m.encoder.q.weight" may be a PyTorch name; "onnx::MatMul_919", "/m/Constant_output_0" and
/// "val_46" are not.
bool isTorchName(llvm::StringRef name);

class NameRules {
public:
  NameRules(const OnnxModel &model, bool neverUntie);

  /// Looks at all reads before the first question: a module's second call has the path
  /// `query_proj_1`, and only reads whose parameter is told show which paths are such calls.
  void learnCalls(llvm::ArrayRef<ParameterRead> reads);
  /// None: a constant.
  std::optional<ParameterName> name(const ParameterRead &read) const;
  /// Name of the bias that a Gemm or Conv without one had in PyTorch.
  std::optional<std::string> droppedBias(const onnx::NodeProto &node) const;
  /// Dim of the weight of such a node that counts its outputs.
  unsigned outputDim(const onnx::NodeProto &node) const;
  /// `name` is `original` but for the suffixes of repeated calls.
  bool isRepeatedCall(llvm::StringRef name, llvm::StringRef original) const;
  const TorchSignature &signature() const { return signature_; }

private:
  std::optional<ParameterName> nameBySignature(const ParameterRead &read) const;
  std::optional<ParameterName> nameByPath(const ParameterRead &read) const;
  std::string calledModule(const onnx::NodeProto &node) const;
  bool fits(const ParameterRead &read, llvm::StringRef name, bool transposed) const;

  const OnnxModel &model_;
  bool neverUntie_;
  TorchSignature signature_;
  llvm::StringMap<std::string> calls_; ///< path of a repeated call -> path of the module
  std::vector<std::string>
      pathNames_; ///< by root: name of a folded weight by its direct use, or ""
};

} // namespace shardc
