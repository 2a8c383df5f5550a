// SPDX-License-Identifier: Apache-2.0
// Values of the compiler's flags, parsed with messages that say got and wanted.
#pragma once

#include "ir/base/Error.h"
#include "ir/base/Tensor.h"
#include <vector>

namespace shardc {

using Strings = llvm::ArrayRef<std::string>;

/// "batch=8,src=128", several of them.
llvm::Error parseBindings(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, int64_t>> &out);
/// "input_ids=8x128".
llvm::Error parseShapes(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, Dims>> &out);
/// "A=B".
llvm::Error parsePairs(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, std::string>> &out);
/// An integer in [least, most].
llvm::Expected<int64_t> parseCount(llvm::StringRef flag, llvm::StringRef text, int64_t least, int64_t most = INT32_MAX);
/// A flag of cli.md that this version does not honour.
llvm::Error notBuilt(llvm::StringRef flag, llvm::StringRef got, llvm::StringRef only);

/// An enum by its toString.
template <typename E>
llvm::Error parseChoice(llvm::StringRef flag, llvm::StringRef text, std::initializer_list<E> all, E &out) {
  std::string names;
  for (E e : all) {
    if (toString(e) == text) {
      out = e;
      return llvm::Error::success();
    }
    names += (names.empty() ? "" : ", ") + toString(e).str();
  }
  return userError(flag + ": got '" + text + "', wanted one of " + names);
}

} // namespace shardc
