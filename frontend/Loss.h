// SPDX-License-Identifier: Apache-2.0
// The loss as (sum, count): the one in the model, or one that we add to its logits.
#pragma once

#include "frontend/Importer.h"
#include "frontend/NodeContext.h"

namespace shardc {

/// What is to be trained on, decided before any node is imported.
struct LossChoice {
  enum class Kind : uint8_t { None, InModel, CrossEntropy, MeanSquares } kind = Kind::None;
  std::string output; ///< of the model: the loss itself, or the logits
};
llvm::Expected<LossChoice> chooseLoss(const OnnxModel &model, const ImportOptions &options);

/// Adds the outputs loss_sum, loss_count, correct. `value` is what the chosen output is; `labels`
/// the value of the input that an added loss reads, null if the model has none of that name (then
/// it is made). Mistakes go to `b`.
void attachLoss(Emitter &b, const LossChoice &choice, const ImportOptions &options, Value *value,
                Value *labels, ImportNotes &notes);

struct LossParts {
  Value *sum = nullptr, *count = nullptr, *correct = nullptr;
};
/// Of scores with the classes in dim 1 (any number of dims behind), labels without that dim. Nulls
/// after a mistake.
LossParts crossEntropy(Emitter &b, Value *scores, Value *labels, int64_t ignoreIndex);
/// Classes from dim 1 to the end, all else flattened: [rows, classes].
Value *classRows(Emitter &b, Value *scores);

/// `decoder_input_ids` for --shift-right: [start, labels without the last], what is ignored replaced by the padding.
Value *shiftedLabels(Emitter &b, const ImportOptions &options, Value *labels);

/// An `input` op that a data file must provide.
Value *makeInput(Emitter &b, llvm::StringRef name, const Type &type);

} // namespace shardc
