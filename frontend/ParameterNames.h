// SPDX-License-Identifier: Apache-2.0
// Finds the parameters of an ONNX model: PyTorch's names and shapes, false ties undone, true ties
// kept.
#pragma once

#include "frontend/TensorSource.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>
#include <vector>

namespace shardc {
class OnnxModel;

/// A trainable tensor as PyTorch's state_dict has it.
struct ModelParameter {
  std::string name;
  std::vector<std::string>
      otherNames;                     ///< of the same tensor (true ties), in the order of first use
  llvm::SmallVector<int64_t, 4> dims; ///< PyTorch's; of a linear layer [out, in]
  DType dtype = DType::F32;
  TensorSource source;
  bool transposed = false; ///< the stored bytes are the transpose: source.dims is [in, out]
};

/// Input `input` of node `node` of `model.graph()` reads `parameter`.
struct ParameterUse {
  int node = 0, input = 0;
  int parameter = 0;
  bool transposed = false; ///< the node wants the [in, out] transpose of the parameter
};

/// A bias that the exporter dropped because it was all zero: to be input `input` of node `node`.
struct DroppedBias {
  int node = 0, input = 0;
  int parameter = 0; ///< its source is Zeros
};

/// Nodes of subgraphs that read `value` (an initializer, or an Identity of one) read `parameter`.
struct ParameterCapture {
  std::string value;
  int parameter = 0;
  bool transposed = false; ///< as in ParameterUse
};

struct ParameterTable {
  std::vector<ModelParameter> parameters; ///< in the order of first use
  std::vector<ParameterUse> uses;         ///< sorted by node, then input
  std::vector<DroppedBias> biases;        ///< sorted by node
  std::vector<ParameterCapture> captures;
  std::vector<std::string> notes; ///< doubts that a user should know, one line each
  std::string wrapper;            ///< "m." where an exporter's wrapper holds the model; not in names here
};

struct ParameterOptions {
  enum class Untie : uint8_t { Auto, Never };
  Untie untie = Untie::Auto;
  /// `--tie A=B`: both names become one parameter, stored as A.
  std::vector<std::pair<std::string, std::string>> ties;
};

/// Every input of a top-level node that reads a parameter stands in `uses`, also where an Identity
/// lies in between: it reads the parameter there, not the value that the message names. (The
/// Identity itself has no entry.) Float initializers that do not appear are constants. A graph
/// output that is a parameter has no entry.
llvm::Expected<ParameterTable> findParameters(const OnnxModel &model,
                                              const ParameterOptions &options = {});

} // namespace shardc
