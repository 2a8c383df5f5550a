// SPDX-License-Identifier: Apache-2.0
// The texts of --help, cut into lines.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace shardc {

/// `text` with `lineBreak` between words, so that no line is longer than `columns` unless a word is. Line breaks of the text stay;
/// what else stands in `lineBreak` does not count.
std::string wrapped(llvm::StringRef text, size_t columns, llvm::StringRef lineBreak = "\n");

/// Cuts what --help says of flags into lines that a terminal of so many columns shows as they are. Requires: all flags are known.
void wrapHelp(size_t columns);

} // namespace shardc
