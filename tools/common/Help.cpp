// SPDX-License-Identifier: Apache-2.0
#include "tools/common/Help.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"

using namespace llvm;

namespace shardc {

std::string wrapped(StringRef text, size_t columns, StringRef lineBreak) {
  auto [line, others] = text.split('\n');
  const bool isLast = line.size() == text.size();
  std::string lines;
  size_t used = 0;
  while (!line.empty()) {
    auto [word, rest] = line.split(' ');
    const bool fits = used + word.size() < columns;
    if (used)
      lines += fits ? " " : lineBreak;
    used = used && fits ? used + 1 + word.size() : word.size();
    lines += word;
    line = rest;
  }
  return isLast ? lines : lines + "\n" + wrapped(others, columns, lineBreak);
}

void wrapHelp(size_t columns) {
  constexpr size_t kDash = 3, kFewest = 20; // " - "; less is no place for words
  size_t flags = 0;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden)
      flags = std::max(flags, entry.second->getOptionWidth());
  if (columns < flags + kDash + kFewest)
    return;
  static BumpPtrAllocator memory; // llvm::cl keeps references
  static StringSaver texts(memory);
  for (const auto &entry : cl::getRegisteredOptions())
    entry.second->setDescription(texts.save(wrapped(entry.second->HelpStr, columns - flags - kDash)));
}

} // namespace shardc
