// SPDX-License-Identifier: Apache-2.0
#include "passes/FusedBody.h"
#include "ir/graph/Fold.h"
#include "ir/ops/OpDef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace shardc {

static std::string spell(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return value < 0 || std::signbit(value) ? "(" + text + ")" : text;
}

static std::string spell(int64_t value) {
  std::string text = llvm::itostr(value);
  return value < 0 ? "(" + text + ")" : text;
}

std::optional<std::string> inlineNumber(const Value *value) {
  const Tensor *t = constantOf(value);
  if (!t || t->numElements() != 1)
    return std::nullopt;
  if (t->dtype() == DType::Bool)
    return t->asInt(0) ? "bool(1)" : "bool(0)";
  if (!isFloat(t->dtype()))
    return spell(t->asInt(0));
  double number = t->asDouble(0);
  return std::isfinite(number) ? std::optional(spell(number)) : std::nullopt;
}

/// `scalar` with a, b, c and attribute names replaced. Names before '(' are functions.
static std::string substitute(const Op &op, llvm::ArrayRef<std::string> operands) {
  llvm::StringRef rest = op.def().scalar;
  std::string out;
  while (!rest.empty()) {
    if (llvm::isDigit(rest.front()) || rest.front() == '.') { // a number, with its exponent
      size_t n = 1;
      while (n < rest.size() && (llvm::isAlnum(rest[n]) || rest[n] == '.' || ((rest[n] == '-' || rest[n] == '+') && rest[n - 1] == 'e')))
        ++n;
      out += rest.take_front(n);
      rest = rest.drop_front(n);
      continue;
    }
    llvm::StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (word.empty()) {
      out += rest.front();
      rest = rest.drop_front();
      continue;
    }
    rest = rest.drop_front(word.size());
    if (rest.ltrim().starts_with("("))
      out += word;
    else if (word.size() == 1 && word[0] >= 'a' && word[0] - 'a' < int(operands.size()))
      out += operands[word[0] - 'a'];
    else if (const Attr *attr = op.attrs.find(word))
      out += std::holds_alternative<int64_t>(*attr) ? spell(std::get<int64_t>(*attr)) : spell(std::get<double>(*attr));
    else
      out += word;
  }
  return out;
}

FusedBody writeBody(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<Value *> inputs, llvm::ArrayRef<Value *> outputs) {
  llvm::DenseMap<const Value *, std::string> names;
  for (auto [i, v] : llvm::enumerate(inputs))
    names[v] = "x" + llvm::utostr(i);
  FusedBody body;
  for (auto [i, op] : llvm::enumerate(ops)) {
    llvm::SmallVector<std::string, 3> operands;
    for (Value *v : op->operands()) {
      auto found = names.find(v);
      operands.push_back(found != names.end() ? found->second : *inlineNumber(v));
    }
    std::string name = "t" + llvm::utostr(i);
    body.text += (i ? " " : "") + name + ": " + toString(op->result()->type().dtype).str() + " = " +
                 substitute(*op, operands) + ";";
    names[op->result()] = name;
  }
  for (Value *v : outputs)
    body.outputs += (body.outputs.empty() ? "" : ",") + names[v];
  return body;
}

} // namespace shardc
