// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Type.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

std::string toString(const Type &type) {
  std::string text = toString(type.dtype).str() + "[";
  for (size_t i = 0; i < type.dims.size(); ++i)
    text += (i ? "," : "") + llvm::itostr(type.dims[i]);
  return text + "]";
}

} // namespace shardc
