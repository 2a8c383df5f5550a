// SPDX-License-Identifier: Apache-2.0
// The words of IR text below ops and parameters: strings, numbers, types, constants, attributes.
#pragma once

#include "ir/graph/Attr.h"
#include "ir/graph/Lexer.h"
#include "ir/graph/Type.h"

namespace shardc {

/// Recursive descent; a member returns true on success, having read what it gives, and otherwise has set `error_`.
class LiteralParser {
protected:
  LiteralParser(llvm::StringRef text, llvm::StringRef place) : lexer_(text), place_(place) {}

  /// False. Only the first error counts.
  bool fail(const llvm::Twine &what);
  /// False, with what stands there instead.
  bool unexpected(const llvm::Twine &wanted);
  /// Is the token this, no string?
  bool at(llvm::StringRef text) const;
  /// The same, and goes on behind it.
  bool accept(llvm::StringRef text);
  bool expect(llvm::StringRef text);
  bool word(llvm::StringRef &out, llvm::StringRef wanted);
  bool string(std::string &out);
  bool integer(int64_t &out);
  bool number(double &out);
  bool type(Type &out);
  /// Behind "dense".
  bool tensor(Tensor &out);
  bool attr(Attr &out);
  /// "{...}", or nothing.
  bool attrs(Attrs &out);

  Lexer lexer_;
  llvm::StringRef place_;
  std::string error_;
};

} // namespace shardc
