// SPDX-License-Identifier: Apache-2.0
// Splits IR text into tokens.
#pragma once

#include "llvm/ADT/StringExtras.h"

namespace shardc {

struct Token {
  enum Kind { End, Word, Number, String, Punctuation, Bad } kind = End;
  llvm::StringRef text; ///< of a string: without quotes, escapes still in
  unsigned line = 1;
};

/// Words hold letters, digits, '.', '_'; names start with '%' or '@'; '//' starts a comment.
class Lexer {
public:
  explicit Lexer(llvm::StringRef text) : rest_(text) { advance(); }
  const Token &token() const { return token_; }

  void advance() {
    skipBlanks();
    token_ = {Token::End, "", line_};
    if (rest_.empty())
      return;
    char c = rest_.front();
    size_t length = 1;
    Token::Kind kind = Token::Punctuation;
    if (c == '"') {
      while (length < rest_.size() && rest_[length] != '"' && rest_[length] != '\n')
        ++length;
      if (length >= rest_.size() || rest_[length] == '\n') {
        token_ = {Token::Bad, rest_.take_front(length), line_};
        rest_ = "";
        return;
      }
      token_ = {Token::String, rest_.slice(1, length), line_};
      rest_ = rest_.drop_front(length + 1);
      return;
    }
    if (llvm::isAlpha(c) || c == '_' || c == '%' || c == '@') {
      kind = Token::Word;
      while (length < rest_.size() && isWordChar(rest_[length]))
        ++length;
    } else if (llvm::isDigit(c) || (c == '-' && rest_.size() > 1 && (llvm::isAlnum(rest_[1]) || rest_[1] == '.'))) {
      kind = Token::Number;
      while (length < rest_.size() &&
             (isWordChar(rest_[length]) ||
              ((rest_[length] == '-' || rest_[length] == '+') && (rest_[length - 1] == 'e'))))
        ++length;
    }
    token_ = {kind, rest_.take_front(length), line_};
    rest_ = rest_.drop_front(length);
  }

  /// The run of hexadecimal digits that follows the current token; consumes it.
  llvm::StringRef takeHex() {
    if (token_.kind == Token::Word || token_.kind == Token::Number) {
      llvm::StringRef text = token_.text;
      advance();
      return text;
    }
    return "";
  }

private:
  static bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }
  void skipBlanks() {
    while (!rest_.empty()) {
      if (rest_.starts_with("//"))
        rest_ = rest_.drop_until([](char c) { return c == '\n'; });
      else if (rest_.front() == '\n' || rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r') {
        line_ += rest_.front() == '\n';
        rest_ = rest_.drop_front();
      } else
        return;
    }
  }
  llvm::StringRef rest_;
  unsigned line_ = 1;
  Token token_;
};

} // namespace shardc
