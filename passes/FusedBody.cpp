// SPDX-License-Identifier: Apache-2.0
#include "passes/FusedBody.h"
#include "ir/graph/Fold.h"
#include "ir/ops/OpDef.h"
#include "passes/RowForm.h"
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

static std::string spell(const Attr &attr) {
  return std::holds_alternative<int64_t>(attr) ? spell(std::get<int64_t>(attr)) : spell(std::get<double>(attr));
}

/// `text` with names replaced by what `lookup` gives ("": kept). Names before '(' are functions.
static std::string substitute(llvm::StringRef rest, llvm::function_ref<std::string(llvm::StringRef)> lookup) {
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
    if (rest.consume_front("[")) { // [name|number]: an optional operand
      auto [choice, behind] = rest.split(']');
      auto [name, number] = choice.split('|');
      std::string found = lookup(name);
      out += found.empty() ? number.str() : found;
      rest = behind;
      continue;
    }
    llvm::StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (word.empty()) {
      out += rest.front();
      rest = rest.drop_front();
      continue;
    }
    rest = rest.drop_front(word.size());
    std::string found = rest.ltrim().starts_with("(") ? "" : lookup(word);
    out += found.empty() ? word.str() : found;
  }
  return out;
}

FusedInput inputOf(const Op &op, unsigned operand) {
  return {op.operand(operand), op.def().rows && (op.def().perRow >> operand & 1)};
}

namespace {

class BodyWriter {
public:
  explicit BodyWriter(llvm::ArrayRef<FusedInput> inputs) {
    for (auto [i, input] : llvm::enumerate(inputs))
      names_[{input.value, input.perRow}] = "x" + llvm::utostr(i);
  }

  FusedBody run(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<Value *> outputs) {
    for (Op *op : ops)
      op->def().scalar ? pointwise(*op) : overRows(*op);
    for (Value *v : outputs)
      body_.outputs += (body_.outputs.empty() ? "" : ",") + names_[{v, false}];
    return std::move(body_);
  }

private:
  std::string operand(const Op &op, unsigned i) const {
    FusedInput input = inputOf(op, i);
    auto found = names_.find({input.value, input.perRow});
    return found != names_.end() ? found->second : *inlineNumber(input.value);
  }

  std::string line(DType dtype, const std::string &expression) {
    std::string name = "t" + llvm::utostr(lines_++);
    body_.text += (body_.text.empty() ? "" : " ") + name + ": " + toString(dtype).str() + " = " + expression + ";";
    return name;
  }

  void pointwise(const Op &op) {
    llvm::SmallVector<std::string, 3> operands;
    for (unsigned i = 0; i < op.numOperands(); ++i)
      operands.push_back(operand(op, i));
    names_[{op.result(), false}] = line(op.result()->type().dtype, substitute(op.def().scalar, [&](llvm::StringRef word) {
      if (word.size() == 1 && word[0] >= 'a' && word[0] - 'a' < int(operands.size()))
        return operands[word[0] - 'a'];
      const Attr *attr = op.attrs.find(word);
      return attr ? spell(*attr) : "";
    }));
  }

  void overRows(const Op &op) {
    const RowForm form = *rowFormOf(op);
    const DType wide = wideType(op.operand(0)->type().dtype);
    llvm::SmallVector<std::pair<llvm::StringRef, std::string>> known{{"M", spell(1 / double(form.length()))}};
    for (unsigned i = 0; i < op.numOperands(); ++i)
      if (op.operand(i))
        known.push_back({llvm::StringRef(op.def().operands[i]).rtrim('?'), operand(op, i)});
    auto lookup = [&](llvm::StringRef word) {
      for (auto &[name, text] : llvm::reverse(known))
        if (name == word)
          return text;
      const Attr *attr = op.attrs.find(word);
      return attr ? spell(*attr) : std::string();
    };
    llvm::SmallVector<llvm::StringRef> statements;
    form.lines.split(statements, ';', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef statement : statements) {
      auto [name, expression] = statement.split('=');
      name = name.trim();
      int result = indexOf(op.def(), name);
      if (result >= int(op.numResults()))
        continue; // one that was not asked for
      bool isColumn = result >= 0 && form.results[result] == RowKind::Column;
      if (isColumn && !op.result(result)->hasUses())
        continue;
      std::string text = line(result < 0 || isColumn ? wide : op.result(result)->type().dtype,
                              substitute(expression.trim(), lookup));
      known.push_back({name, text});
      if (result >= 0)
        names_[{op.result(result), false}] = text;
    }
  }

  /// Of the result of that name, -1 if it is none.
  static int indexOf(const OpDef &def, llvm::StringRef name) {
    if (def.results.empty())
      return name == "y" ? 0 : -1;
    auto found = llvm::find(def.results, name);
    return found == def.results.end() ? -1 : int(found - def.results.begin());
  }

  llvm::DenseMap<std::pair<const Value *, unsigned>, std::string> names_;
  unsigned lines_ = 0;
  FusedBody body_;
};

} // namespace

FusedBody writeBody(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<FusedInput> inputs, llvm::ArrayRef<Value *> outputs) {
  return BodyWriter(inputs).run(ops, outputs);
}

FusedBody writeBody(llvm::ArrayRef<Op *> ops, llvm::ArrayRef<Value *> inputs, llvm::ArrayRef<Value *> outputs) {
  llvm::SmallVector<FusedInput> list;
  for (Value *v : inputs)
    list.push_back({v});
  return BodyWriter(list).run(ops, outputs);
}

} // namespace shardc
