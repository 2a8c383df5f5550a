// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/FusedText.h"
#include "ir/base/ScalarMath.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <bit>

namespace shardc::cuda {

const char *storedType(DType dtype) {
  static constexpr const char *kNames[] = {"float", "double", "F16", "BF16", "int", "i64", "u8", "u8"};
  return kNames[unsigned(dtype)];
}
const char *registerType(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? "float" : storedType(dtype);
}

namespace {

/// The function of the prelude. Requires: it has one.
const char *functionOf(ScalarCode code) {
  static constexpr const char *kNames[] = {
      "add",      "sub",      "mul",     "divided",     "modulo",    "negated", "power", "largest",
      "smallest", "absolute", "signOf",  "exponential", "logarithm", "root",    "sine",  "cosine",
      "tanhOf",   "erfOf",    "ceiling", "floored",     "rounded",   "isNan",   "isInf"};
  static_assert(std::size(kNames) == size_t(ScalarCode::IsInf) - size_t(ScalarCode::Add) + 1);
  assert(code >= ScalarCode::Add && code <= ScalarCode::IsInf);
  return kNames[size_t(code) - size_t(ScalarCode::Add)];
}
bool floatsOnly(ScalarCode code) {
  return (code >= ScalarCode::Exp && code <= ScalarCode::Erf) ||
         (code >= ScalarCode::Ceil && code <= ScalarCode::IsInf);
}
const char *operatorOf(ScalarCode code) {
  switch (code) {
  case ScalarCode::Equal:
    return "==";
  case ScalarCode::Less:
    return "<";
  case ScalarCode::LessEqual:
    return "<=";
  case ScalarCode::Greater:
    return ">";
  case ScalarCode::GreaterEqual:
    return ">=";
  default:
    return nullptr;
  }
}

unsigned arity(const ScalarInstr &instr) {
  unsigned n = 0;
  while (n < 3 && instr.args[n] >= 0)
    ++n;
  return n;
}

} // namespace

std::string literal(DType dtype, double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto hex = [](uint64_t bits) { return llvm::format_hex(bits, 1); };
  switch (dtype) {
  case DType::F64:
    os << "__longlong_as_double(" << hex(std::bit_cast<uint64_t>(value)) << "ll)";
    break;
  case DType::I32:
    os << "(int)" << hex(uint32_t(scalar::convert<int32_t>(value))) << "u";
    break;
  case DType::I64:
    os << "(i64)" << hex(uint64_t(scalar::convert<int64_t>(value))) << "ull";
    break;
  case DType::U8:
    os << "(u8)" << unsigned(scalar::convert<uint8_t>(value));
    break;
  case DType::Bool:
    os << "(u8)" << (value != 0);
    break;
  default:
    os << "__uint_as_float(" << hex(std::bit_cast<uint32_t>(float(value))) << "u)";
  }
  return text;
}

namespace {

class Speller {
public:
  Speller(const ScalarProgram &program, NameOf name) : program_(program), name_(name) {}

  std::string expression(size_t i) const {
    const ScalarInstr &instr = program_.code[i];
    switch (instr.code) {
    case ScalarCode::Number:
      return literal(instr.dtype, instr.number);
    case ScalarCode::Select:
      return arg(instr, 0) + " ? " + arg(instr, 1) + " : " + arg(instr, 2);
    case ScalarCode::Convert:
      return converted(program_.code[instr.args[0]].dtype, instr.dtype, arg(instr, 0));
    case ScalarCode::And:
      return "(u8)(" + arg(instr, 0) + " != 0 & " + arg(instr, 1) + " != 0)";
    case ScalarCode::Or:
      return "(u8)(" + arg(instr, 0) + " != 0 | " + arg(instr, 1) + " != 0)";
    case ScalarCode::Not:
      return "(u8)(" + arg(instr, 0) + " == 0)";
    case ScalarCode::Pow:
      if (std::string simple = simplePower(instr); !simple.empty())
        return simple;
      break;
    default:
      break;
    }
    const DType operand = program_.code[instr.args[0]].dtype;
    if (const char *op = operatorOf(instr.code))
      return "(u8)(" + arg(instr, 0) + " " + op + " " + arg(instr, 1) + ")";
    if (operand == DType::Bool && (instr.code == ScalarCode::Max || instr.code == ScalarCode::Min))
      return "(u8)(" + arg(instr, 0) + " != 0 " + (instr.code == ScalarCode::Max ? "| " : "& ") +
             arg(instr, 1) + " != 0)";
    std::string call = functionOf(instr.code);
    call += "(" + arg(instr, 0);
    if (instr.args[1] >= 0)
      call += ", " + arg(instr, 1);
    return call + ")";
  }

private:
  /// Powers that products and roots give, as on the host.
  std::string simplePower(const ScalarInstr &instr) const {
    const ScalarInstr &exponent = program_.code[instr.args[1]];
    if (!isFloat(instr.dtype) || exponent.code != ScalarCode::Number)
      return "";
    const std::string a = arg(instr, 0), one = literal(instr.dtype, 1), square = "mul(" + a + ", " + a + ")";
    const double e = exponent.number;
    return e == 1      ? a
           : e == 2    ? square
           : e == 3    ? "mul(" + square + ", " + a + ")"
           : e == 0.5  ? "root(" + a + ")"
           : e == -0.5 ? "divided(" + one + ", root(" + a + "))"
           : e == -1   ? "divided(" + one + ", " + a + ")"
           : e == -2   ? "divided(" + one + ", " + square + ")"
                       : "";
  }

  static std::string converted(DType from, DType to, const std::string &a) {
    if (to == DType::Bool)
      return "(u8)(" + a + " != 0)";
    if (isFloat(from) && !isFloat(to))
      return (to == DType::I32   ? "saturateI32("
              : to == DType::I64 ? "saturateI64("
                                 : "saturateU8(") +
             a + ")";
    return std::string("(") + registerType(to) + ")" + a;
  }

  std::string arg(const ScalarInstr &instr, unsigned k) const { return name_(instr.args[k]); }

  const ScalarProgram &program_;
  NameOf name_;
};

} // namespace

std::string expressionOf(const ScalarProgram &program, size_t i, NameOf name) { return Speller(program, name).expression(i); }

std::string roundedTo(DType dtype, const std::string &expression) {
  return dtype == DType::F16 ? "roundF16(" + expression + ")" : dtype == DType::BF16 ? "roundBF16(" + expression + ")" : expression;
}

std::vector<bool> usedInstructions(const ScalarProgram &program) {
  std::vector<bool> used(program.code.size(), false);
  for (int16_t output : program.outputs)
    used[output] = true;
  for (size_t i = program.code.size(); i-- > 0;)
    for (unsigned k = 0, e = used[i] ? arity(program.code[i]) : 0; k < e; ++k)
      used[program.code[i].args[k]] = true;
  return used;
}

std::vector<bool> readInstructions(const ScalarProgram &program) {
  const std::vector<bool> used = usedInstructions(program);
  std::vector<bool> read(program.code.size(), false);
  for (size_t i = 0; i < program.code.size(); ++i)
    for (unsigned k = 0, e = used[i] ? arity(program.code[i]) : 0; k < e; ++k)
      read[program.code[i].args[k]] = true;
  return read;
}

std::string checkFused(const ScalarProgram &program) {
  std::vector<bool> used = usedInstructions(program);
  for (size_t i = 0; i < program.code.size(); ++i) {
    const ScalarInstr &instr = program.code[i];
    if (!used[i] || instr.code == ScalarCode::Input || instr.code == ScalarCode::Number ||
        instr.code == ScalarCode::Convert || instr.code == ScalarCode::Select)
      continue;
    if (instr.code == ScalarCode::Keep) {
      if (!isFloat(instr.dtype))
        return "keep: wanted a float type";
      if (!(instr.number >= 0 && instr.number < 1))
        return "keep: ratio: wanted 0 <= p < 1";
      continue;
    }
    const DType operand = program.code[instr.args[0]].dtype;
    const bool logic =
        instr.code == ScalarCode::And || instr.code == ScalarCode::Or || instr.code == ScalarCode::Not;
    const bool extreme = instr.code == ScalarCode::Max || instr.code == ScalarCode::Min;
    const bool joins = instr.code >= ScalarCode::RowSum;
    const bool good = joins ? operand == DType::F32 || operand == DType::F64
                      : operand == DType::Bool ? logic || extreme || operatorOf(instr.code)
                                             : !logic && (isFloat(operand) || !floatsOnly(instr.code));
    if (!good)
      return "no kernel for an instruction with type " + toString(operand).str() + " and result " +
             toString(instr.dtype).str();
  }
  return "";
}

} // namespace shardc::cuda
