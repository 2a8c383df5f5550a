// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to a graph at Level::Imported: our ops, static shapes, named parameters, a
// loss.
#pragma once

#include "frontend/OnnxFile.h"
#include "frontend/ParameterNames.h"
#include "ir/graph/Graph.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace shardc {

struct ImportOptions {
  /// `--dim NAME=V`: symbolic dimensions of the inputs.
  std::vector<std::pair<std::string, int64_t>> dims;
  /// `--batch`: the dimension that dim 0 of the first input names.
  std::optional<int64_t> batch;
  /// Replaces what `dims`, `batch` and `inputShapes` say of that dimension: for those who try others.
  std::optional<int64_t> batchInstead;
  /// `--input-shape NAME=8x128`.
  std::vector<std::pair<std::string, Dims>> inputShapes;

  /// auto | cross_entropy | mse | the name of a scalar output | none (outputs keep their names: for
  /// tests and tools).
  std::string loss = "auto";
  std::string logits; ///< output that an added loss reads; "": `logits`, or the only output
  std::string labels = "labels"; ///< input that an added loss reads
  int64_t ignoreIndex = -100;
  /// `--shift-right PAD:START`: makes decoder_input_ids from the labels.
  struct ShiftRight {
    int64_t pad, start;
  };
  std::optional<ShiftRight> shiftRight;

  std::vector<std::string> freeze;   ///< globs over parameter names
  ParameterOptions parameters;       ///< ties
  llvm::StringMap<Tensor> constants; ///< inputs whose values are known: they fold
};

/// Leaves a graph that
///  - has `input` ops named as in the model (attrs low, high, ignore: what values may be), only
///  those that are needed;
///  - has `param` ops and Graph::parameters in PyTorch's names and shapes, with `trainable`
///  decided;
///  - has outputs "loss_sum", "loss_count" (f32 scalars) and, for cross entropy, "correct";
///  - says place, layer and batch-majorness of everything;
///  - has attrs "opset", "ir_version", "producer", "model_hash", "batch", "loss" and
///  "loss_divisible" (0: the loss is a
///    scalar that is not known to be a mean over the batch, so the batch must not be cut).
/// Weights are not read. Appends to `notes` what a user should know, one line each.
llvm::Expected<std::unique_ptr<Graph>> importOnnx(const OnnxModel &model,
                                                  const ImportOptions &options,
                                                  std::vector<std::string> *notes = nullptr);

} // namespace shardc
