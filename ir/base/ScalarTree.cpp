// SPDX-License-Identifier: Apache-2.0
#include "ir/base/ScalarTree.h"
#include "llvm/ADT/StringSwitch.h"
#include <bit>
#include <cmath>

namespace shardc::scalar_tree {
namespace {

using enum ScalarCode;

bool isComparison(ScalarCode code) { return code >= Equal && code <= GreaterEqual; }
bool isLogic(ScalarCode code) { return code == And || code == Or || code == Not; }
bool isFloatFunction(ScalarCode code) { return (code >= Exp && code <= IsInf) || (code >= RowSum && code <= ColumnSum); }

/// A function of the grammar; `args` 0: there is none of that name.
struct Function {
  ScalarCode code;
  unsigned args;
};
Function findFunction(llvm::StringRef name) {
  return llvm::StringSwitch<Function>(name)
      .Case("pow", {Pow, 2})
      .Case("max", {Max, 2})
      .Case("min", {Min, 2})
      .Case("mod", {Mod, 2})
      .Case("abs", {Abs, 1})
      .Case("sign", {Sign, 1})
      .Case("exp", {Exp, 1})
      .Case("log", {Log, 1})
      .Case("sqrt", {Sqrt, 1})
      .Case("sin", {Sin, 1})
      .Case("cos", {Cos, 1})
      .Case("tanh", {Tanh, 1})
      .Case("erf", {Erf, 1})
      .Case("ceil", {Ceil, 1})
      .Case("floor", {Floor, 1})
      .Case("round", {Round, 1})
      .Case("isnan", {IsNan, 1})
      .Case("isinf", {IsInf, 1})
      .Case("rowsum", {RowSum, 1})
      .Case("rowmax", {RowMax, 1})
      .Case("colsum", {ColumnSum, 1})
      .Default({Number, 0});
}

} // namespace

int Tree::fail(size_t column, const llvm::Twine &what) {
  if (error.empty()) {
    error = what.str();
    errorColumn = column;
  }
  return -1;
}

int Tree::add(Node node) {
  constexpr unsigned kMaxDepth = 4000; // of the recursion that writes the code
  for (int arg : node.args)
    if (arg >= 0)
      node.depth = std::max(node.depth, nodes[arg].depth + 1);
  if (node.depth > kMaxDepth)
    return fail(node.column, "expression: got more than 4000 levels, wanted fewer");
  nodes.push_back(node);
  return int(nodes.size()) - 1;
}

std::optional<DType> Tree::common(size_t column, llvm::ArrayRef<int> args) {
  std::optional<DType> type;
  for (int arg : args) {
    std::optional<DType> next = nodes[arg].type;
    if (!next)
      continue;
    next = promoted(*next);
    if (type && *type != *next)
      fail(column, "types differ: got " + toString(*type) + " and " + toString(*next) +
                       ", wanted equal ones");
    type = next;
  }
  return type;
}

int Tree::number(size_t column, double value) {
  return add({.kind = Node::Number, .number = value, .column = column});
}
int Tree::input(size_t column, int64_t index, DType dtype) {
  return add({.kind = Node::Input, .type = dtype, .index = index, .column = column});
}
int Tree::reg(size_t column, int16_t index, DType dtype) {
  return add({.kind = Node::Register, .type = dtype, .index = index, .column = column});
}

int Tree::unary(size_t column, ScalarCode code, int operand) {
  if (!error.empty())
    return -1;
  if (code == Neg && nodes[operand].kind == Node::Number)
    return number(column, -nodes[operand].number);
  std::optional<DType> type = common(column, operand);
  if (code == Not && type != DType::Bool)
    return fail(column, "got a number, wanted a truth value");
  if (code != Not && type == DType::Bool)
    return fail(column, "got a truth value, wanted a number");
  if (type && !isFloat(*type) && isFloatFunction(code))
    return fail(column, "got " + toString(*type) + ", wanted a float type");
  bool test = code == IsNan || code == IsInf;
  return add({.kind = Node::Operation,
              .code = code,
              .type = test ? DType::Bool : type,
              .args = {operand, -1, -1},
              .column = column});
}

int Tree::binary(size_t column, ScalarCode code, int left, int right) {
  if (!error.empty())
    return -1;
  std::optional<DType> type = common(column, {left, right});
  if (isLogic(code) && (nodes[left].type != DType::Bool || nodes[right].type != DType::Bool))
    return fail(column, "got a number, wanted truth values");
  if (!isLogic(code) && code != Equal && type == DType::Bool)
    return fail(column, "got a truth value, wanted numbers");
  if (isComparison(code))
    type = DType::Bool;
  return error.empty() ? add({.kind = Node::Operation,
                              .code = code,
                              .type = type,
                              .args = {left, right, -1},
                              .column = column})
                       : -1;
}

int Tree::select(size_t column, int condition, int yes, int no) {
  if (!error.empty())
    return -1;
  if (nodes[condition].type != DType::Bool)
    return fail(column, "condition: got a number, wanted a truth value");
  std::optional<DType> type = common(column, {yes, no});
  return error.empty() ? add({.kind = Node::Operation,
                              .code = Select,
                              .type = type,
                              .args = {condition, yes, no},
                              .column = column})
                       : -1;
}

int Tree::call(size_t column, llvm::StringRef name, llvm::ArrayRef<int> args) {
  auto wantArgs = [&](unsigned count) {
    if (args.size() != count)
      fail(column,
           name + ": got " + llvm::Twine(args.size()) + " arguments, wanted " + llvm::Twine(count));
    return args.size() == count;
  };
  if (std::optional<DType> to = parseDType(name))
    return wantArgs(1) ? add({.kind = Node::Convert,
                              .type = to,
                              .args = {args[0], -1, -1},
                              .column = column})
                       : -1;
  if (name == "keep") {
    if (!wantArgs(3))
      return -1;
    double numbers[3];
    for (unsigned i = 0; i < 3; ++i) {
      if (nodes[args[i]].kind != Node::Number)
        return fail(column, "keep: got an expression, wanted constants p, id, batch_major");
      numbers[i] = nodes[args[i]].number;
    }
    if (!(numbers[0] >= 0 && numbers[0] < 1))
      return fail(column, "keep: got p outside [0, 1), wanted one inside");
    if (!(numbers[1] >= 0 && numbers[1] < 0x1p32))
      return fail(column, "keep: got an id outside [0, 2^32), wanted one inside");
    return add({.kind = Node::Keep,
                .number = numbers[0],
                .index = int64_t(numbers[1]),
                .batchMajor = numbers[2] != 0,
                .column = column});
  }
  Function function = findFunction(name);
  if (function.args == 0)
    return fail(column, "got '" + name + "', wanted a function");
  if (!wantArgs(function.args))
    return -1;
  return function.args == 1 ? unary(column, function.code, args[0])
                            : binary(column, function.code, args[0], args[1]);
}

int16_t Typer::add(ScalarInstr instr) {
  Key key{instr.code,    instr.dtype,     instr.args[0],
          instr.args[1], instr.args[2],   std::bit_cast<uint64_t>(instr.number),
          instr.input,   instr.batchMajor};
  auto [it, isNew] = known_.try_emplace(key, int16_t(program.code.size()));
  if (!isNew)
    return it->second;
  if (program.code.size() >= 30000) {
    tree_.fail(0, "program: got more than 30000 instructions, wanted fewer");
    return 0;
  }
  program.code.push_back(instr);
  return it->second;
}

int16_t Typer::convert(int16_t reg, DType to) {
  if (!tree_.error.empty()) // then `reg` is none
    return 0;
  if (program.code[reg].dtype == to)
    return reg;
  return add({.code = ScalarCode::Convert, .dtype = to, .args = {reg, -1, -1}});
}

int16_t Typer::emit(int index, DType wanted) {
  const Node &node = tree_.nodes[index];
  DType type = node.type.value_or(wanted);
  switch (node.kind) {
  case Node::Number:
    if (type == DType::Bool)
      return tree_.fail(node.column, "got a number, wanted a truth value"), 0;
    if (!isFloat(type) && node.number != std::trunc(node.number))
      return tree_.fail(node.column,
                        "got a fraction, wanted an integer, for it meets " + toString(type)),
             0;
    return add({.code = ScalarCode::Number, .dtype = type, .number = node.number});
  case Node::Input:
    return add({.code = ScalarCode::Input, .dtype = type, .input = node.index});
  case Node::Register:
    return int16_t(node.index);
  case Node::Keep:
    if (!isFloat(type))
      return tree_.fail(node.column, "keep: got " + toString(type) + ", wanted a float type"), 0;
    return add({.code = ScalarCode::Keep,
                .dtype = type,
                .number = node.number,
                .input = node.index,
                .batchMajor = node.batchMajor});
  case Node::Convert:
    return convert(emit(node.args[0], type == DType::Bool ? DType::F64 : promoted(type)), type);
  case Node::Operation:
    break;
  }
  // Operands have one type, which for tests is not the result's.
  std::optional<DType> operandType;
  for (unsigned i = node.code == Select ? 1 : 0; i < 3; ++i)
    if (node.args[i] >= 0 && tree_.nodes[node.args[i]].type && !operandType)
      operandType = promoted(*tree_.nodes[node.args[i]].type);
  if (!operandType)
    operandType = type == DType::Bool ? DType::F64 : type;
  if (isFloatFunction(node.code) && !isFloat(*operandType))
    return tree_.fail(node.column, "got " + toString(*operandType) + ", wanted a float type"), 0;
  ScalarInstr instr{.code = node.code, .dtype = type};
  for (unsigned i = 0; i < 3; ++i) {
    if (node.args[i] < 0)
      continue;
    bool condition = node.code == Select && i == 0;
    DType argType = condition ? DType::Bool : *operandType;
    instr.args[i] = convert(emit(node.args[i], argType), argType);
    if (!tree_.error.empty())
      return 0;
  }
  return add(instr);
}

int16_t Typer::emitLine(int node, DType dtype) {
  int16_t reg = emit(node, promoted(dtype));
  return tree_.error.empty() ? convert(reg, dtype) : 0;
}

} // namespace shardc::scalar_tree
