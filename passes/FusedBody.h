// SPDX-License-Identifier: Apache-2.0
// Writes the scalar program of a fused group from its ops' scalar expressions.
#pragma once

#include "ir/graph/Graph.h"
#include <optional>

namespace shardc {

struct FusedBody {
  std::string text;    ///< "t0: f32 = x0 + x1; t1: f32 = tanh(t0);"
  std::string outputs; ///< "t1": the lines that leave, by comma
};

/// An operand of a group: a value, as elements or as one number for each row.
struct FusedInput {
  Value *value;
  bool perRow = false;
  bool operator==(const FusedInput &o) const { return value == o.value && perRow == o.perRow; }
};

/// Inputs are called x0, x1 ..., lines t0, t1 ... in the order of `ops`: pointwise ones and such that have a RowForm.
FusedBody writeBody(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<FusedInput> inputs, llvm::ArrayRef<Value *> outputs);
FusedBody writeBody(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<Value *> inputs, llvm::ArrayRef<Value *> outputs);

/// The same op's operands, each with its way of being read.
FusedInput inputOf(const Op &op, unsigned operand);

/// A constant of one finite number is written into the body and needs no memory. Its spelling.
std::optional<std::string> inlineNumber(const Value *value);

} // namespace shardc
