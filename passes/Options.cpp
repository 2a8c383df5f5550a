// SPDX-License-Identifier: Apache-2.0
#include "passes/Options.h"

namespace shardc {

llvm::StringRef toString(Optimizer optimizer) {
  constexpr llvm::StringLiteral kNames[] = {"adamw", "adam", "sgd"};
  return kNames[unsigned(optimizer)];
}

llvm::StringRef toString(Precision precision) {
  constexpr llvm::StringLiteral kNames[] = {"fp32", "fp64", "tf32", "bf16", "fp16"};
  return kNames[unsigned(precision)];
}

llvm::StringRef toString(MicroStep step) {
  constexpr llvm::StringLiteral kNames[] = {"only", "first", "middle", "last"};
  return kNames[unsigned(step)];
}

} // namespace shardc
