// SPDX-License-Identifier: Apache-2.0
// Gives every symbolic dimension of a model's inputs its number.
#pragma once

#include "frontend/Importer.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {

struct BoundInput {
  std::string name;
  Type type;
  bool batchMajor = false; ///< dim 0 runs over the batch: it is called as the first input's, or of its size where the names differ
};

struct BoundInputs {
  std::vector<BoundInput> inputs; ///< those that are needed, in the model's order
  int64_t batch = 1;              ///< size of the first input's dim 0
};

/// Binds the inputs of the model that `needed` names, from --dim, --batch and --input-shape. All
/// dimensions that stay unbound are listed in one error; unknown names, contradictions, sizes below
/// 1 and overflows are errors.
llvm::Expected<BoundInputs> bindDims(const OnnxModel &model, const ImportOptions &options,
                                     const llvm::StringSet<> &needed);

/// The flags of `options` that say the batch, as they are typed for another: "--dim batch=4", "--batch 4",
/// "--input-shape ids=4x128,mask=4x128".
std::string batchFlags(const OnnxModel &model, const ImportOptions &options, int64_t batch);

} // namespace shardc
