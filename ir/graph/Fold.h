// SPDX-License-Identifier: Apache-2.0
// Constant folding of single ops: how shape arithmetic vanishes while a model is imported.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// The tensor of a `constant` op's result, null for any other value.
const Tensor *constantOf(const Value *value);

/// Replaces `op`, if it has one result and all its operands are constant, by a `constant` and returns that
/// (`op` itself where it is not folded). Big results of small operands stay: see kFoldBytes.
/// Requires: no result has a use yet. An error is one of evaluation: division by zero, an index out of range.
llvm::Expected<Op *> foldConstant(Op *op);

/// A folded result may have as many bytes as the operands together, or this many.
constexpr int64_t kFoldBytes = 4 << 20;
/// A range folds whatever its size, and may not have more elements than this.
constexpr int64_t kMaxRange = int64_t(1) << 23;
/// `expand` is folded only up to this many elements: as a view it is free.
constexpr int64_t kFoldExpandElements = 4096;

} // namespace shardc
