// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/LiteralParser.h"
#include <cmath>
#include <cstring>

namespace shardc {

static constexpr int64_t kMostTensorBytes = int64_t(1) << 30; ///< of one constant

bool LiteralParser::fail(const llvm::Twine &what) {
  if (error_.empty())
    error_ = (place_ + ":" + llvm::Twine(lexer_.token().line) + ": " + what).str();
  return false;
}

bool LiteralParser::unexpected(const llvm::Twine &wanted) {
  llvm::StringRef got = lexer_.token().kind == Token::End ? llvm::StringRef("the end") : lexer_.token().text;
  return fail("syntax: got " + got.take_front(40) + ", wanted " + wanted);
}

bool LiteralParser::at(llvm::StringRef text) const {
  return lexer_.token().kind != Token::String && lexer_.token().text == text && lexer_.token().kind != Token::End;
}

bool LiteralParser::accept(llvm::StringRef text) {
  if (!at(text))
    return false;
  lexer_.advance();
  return true;
}

bool LiteralParser::expect(llvm::StringRef text) { return accept(text) || unexpected("'" + text + "'"); }

bool LiteralParser::word(llvm::StringRef &out, llvm::StringRef wanted) {
  if (lexer_.token().kind != Token::Word)
    return unexpected(wanted);
  out = lexer_.token().text;
  lexer_.advance();
  return true;
}

bool LiteralParser::string(std::string &out) {
  if (lexer_.token().kind != Token::String)
    return unexpected("a string");
  llvm::StringRef text = lexer_.token().text; // escapes are a backslash, then two hexadecimal digits, or a backslash
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += text[++i];
    } else {
      unsigned code;
      if (text.substr(i + 1, 2).size() != 2 || text.substr(i + 1, 2).getAsInteger(16, code))
        return fail("syntax: bad escape in a string");
      out += char(code);
      i += 2;
    }
  }
  lexer_.advance();
  return true;
}

bool LiteralParser::integer(int64_t &out) {
  if (lexer_.token().kind != Token::Number || lexer_.token().text.getAsInteger(10, out))
    return unexpected("an integer");
  lexer_.advance();
  return true;
}

bool LiteralParser::number(double &out) {
  llvm::StringRef text = lexer_.token().text;
  if (text == "inf" || text == "-inf" || text == "nan")
    out = text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
  else if (lexer_.token().kind != Token::Number || text.getAsDouble(out))
    return unexpected("a number");
  lexer_.advance();
  return true;
}

bool LiteralParser::type(Type &out) {
  llvm::StringRef name;
  if (!word(name, "a type"))
    return false;
  std::optional<DType> dtype = parseDType(name);
  if (!dtype)
    return fail("element type: got " + name + ", wanted one such as f32, i64, bool");
  out = Type(*dtype, {});
  if (!expect("["))
    return false;
  while (!at("]")) {
    int64_t dim;
    if (!integer(dim))
      return false;
    out.dims.push_back(dim);
    if (!accept(","))
      break;
  }
  if (!checkedNumElements(out.dims))
    return fail("type: dims " + formatDims(out.dims) + " are negative or overflow");
  return expect("]");
}

bool LiteralParser::tensor(Tensor &out) {
  Type t;
  if (!expect("<") || !type(t) || !expect(":"))
    return false;
  if (t.numBytes() > kMostTensorBytes)
    return fail("dense: got " + llvm::Twine(t.numBytes()) + " bytes, wanted at most " + llvm::Twine(kMostTensorBytes));
  out = Tensor(t.dtype, t.dims);
  if (accept("hex")) {
    std::string bytes;
    llvm::StringRef digits = lexer_.takeHex();
    if (!llvm::tryGetFromHex(digits, bytes) || int64_t(bytes.size()) != out.numBytes())
      return fail("dense: wrong number of hexadecimal digits");
    memcpy(out.mutableData<char>(), bytes.data(), bytes.size());
    return expect(">");
  }
  bool splat = accept("splat");
  int64_t n = out.numElements(), given = splat ? std::min<int64_t>(n, 1) : n;
  for (int64_t i = 0; i < given; ++i) {
    if (i && !expect(","))
      return false;
    Tensor one;
    if (isFloat(t.dtype)) {
      double value;
      if (!number(value))
        return false;
      one = Tensor::splat(t.dtype, {}, value);
    } else {
      int64_t value;
      if (!integer(value))
        return false;
      one = t.dtype == DType::I64 ? Tensor::of<int64_t>(t.dtype, {}, value) : Tensor::splat(t.dtype, {}, value);
    }
    int64_t size = byteSize(t.dtype);
    for (int64_t k = i; k < (splat ? n : i + 1); ++k)
      memcpy(out.mutableData<char>() + k * size, one.bytes(), size);
  }
  return expect(">");
}

bool LiteralParser::attr(Attr &out) {
  if (lexer_.token().kind == Token::String) {
    std::string text;
    if (!string(text))
      return false;
    out = std::move(text);
    return true;
  }
  if (accept("[")) {
    Ints ints;
    while (!at("]")) {
      int64_t v;
      if (!integer(v))
        return false;
      ints.push_back(v);
      if (!accept(","))
        break;
    }
    out = std::move(ints);
    return expect("]");
  }
  if (accept("dense")) {
    Tensor t;
    if (!tensor(t))
      return false;
    out = std::move(t);
    return true;
  }
  int64_t i;
  if (lexer_.token().kind == Token::Number && !lexer_.token().text.getAsInteger(10, i)) {
    out = i;
    lexer_.advance();
    return true;
  }
  double f;
  if (!number(f))
    return false;
  out = f;
  return true;
}

bool LiteralParser::attrs(Attrs &out) {
  if (!accept("{"))
    return true;
  while (!at("}")) {
    llvm::StringRef name;
    Attr value;
    if (!word(name, "an attribute name") || !expect("=") || !attr(value))
      return false;
    out.set(name, std::move(value));
    if (!accept(","))
      break;
  }
  return expect("}");
}

} // namespace shardc
