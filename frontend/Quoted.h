// SPDX-License-Identifier: Apache-2.0
// Names from files, as error messages show them.
#pragma once

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace shardc {

/// 'name' with unprintable bytes escaped, cut at 200 bytes: a name of an untrusted file may be
/// anything.
inline std::string quoted(llvm::StringRef name) {
  std::string text = "'";
  llvm::raw_string_ostream os(text);
  llvm::printEscapedString(name.take_front(200), os);
  os << (name.size() > 200 ? "...'" : "'");
  return text;
}

/// An overload that is better than std::quoted, which <memory> drags in with some compilers and which argument-dependent
/// look-up finds for a std::string.
inline std::string quoted(const std::string &name) { return quoted(llvm::StringRef(name)); }

} // namespace shardc
