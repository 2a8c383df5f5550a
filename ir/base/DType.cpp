// SPDX-License-Identifier: Apache-2.0
#include "ir/base/DType.h"

namespace shardc {

static constexpr llvm::StringLiteral kNames[kNumDTypes] = {"f32", "f64", "f16", "bf16",
                                                           "i32", "i64", "u8",  "bool"};

llvm::StringRef toString(DType type) { return kNames[unsigned(type)]; }

std::optional<DType> parseDType(llvm::StringRef text) {
  for (unsigned i = 0; i < kNumDTypes; ++i)
    if (text == kNames[i])
      return DType(i);
  return std::nullopt;
}

} // namespace shardc
