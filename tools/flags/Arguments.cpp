// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/Arguments.h"

namespace shardc {

/// Calls `each(name, value)` for every NAME=VALUE.
template <typename Each>
static llvm::Error splitPairs(llvm::StringRef flag, Strings texts, llvm::StringRef form, Each each) {
  for (llvm::StringRef text : texts) {
    auto [name, value] = text.split('=');
    if (name.empty() || value.empty())
      return userError(flag + ": got '" + text + "', wanted " + form);
    if (llvm::Error error = each(name, value))
      return error;
  }
  return llvm::Error::success();
}

/// "a=1,b=2" is "a=1" and "b=2".
static std::vector<std::string> splitAtCommas(Strings texts) {
  std::vector<std::string> parts;
  for (llvm::StringRef text : texts) {
    llvm::SmallVector<llvm::StringRef> pieces;
    text.split(pieces, ',');
    for (llvm::StringRef piece : pieces)
      parts.push_back(piece.str());
  }
  return parts;
}

llvm::Error parseBindings(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, int64_t>> &out) {
  return splitPairs(flag, splitAtCommas(texts), "NAME=V", [&](llvm::StringRef name, llvm::StringRef value) -> llvm::Error {
    auto count = parseCount((flag + " " + name).str(), value, 1);
    if (!count)
      return count.takeError();
    out.emplace_back(name.str(), *count);
    return llvm::Error::success();
  });
}

llvm::Error parseShapes(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, Dims>> &out) {
  return splitPairs(flag, splitAtCommas(texts), "NAME=8x128", [&](llvm::StringRef name, llvm::StringRef value) -> llvm::Error {
    Dims dims;
    llvm::SmallVector<llvm::StringRef> pieces;
    value.split(pieces, 'x');
    for (llvm::StringRef piece : pieces) {
      auto count = parseCount((flag + " " + name).str(), piece, 1);
      if (!count)
        return count.takeError();
      dims.push_back(*count);
    }
    out.emplace_back(name.str(), dims);
    return llvm::Error::success();
  });
}

llvm::Error parsePairs(llvm::StringRef flag, Strings texts, std::vector<std::pair<std::string, std::string>> &out) {
  return splitPairs(flag, texts, "A=B", [&](llvm::StringRef name, llvm::StringRef value) {
    out.emplace_back(name.str(), value.str());
    return llvm::Error::success();
  });
}

llvm::Expected<int64_t> parseCount(llvm::StringRef flag, llvm::StringRef text, int64_t least, int64_t most) {
  int64_t value;
  if (text.getAsInteger(10, value) || value < least || value > most)
    return userError(flag + ": got '" + text + "', wanted an integer from " + llvm::Twine(least) + " to " + llvm::Twine(most));
  return value;
}

llvm::Error notBuilt(llvm::StringRef flag, llvm::StringRef got, llvm::StringRef only) {
  return userError("--" + flag + ": not built yet: got '" + got + "', wanted " +
                       (only.empty() ? llvm::Twine("nothing") : llvm::Twine("'") + only + "'"),
                   only.empty() ? "leave the flag out" : "leave the flag out, or give its default");
}

} // namespace shardc
