// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/FusedSource.h"
#include "ir/base/Philox.h"
#include "ir/base/ScalarMath.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/FusedPrelude.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <bit>

namespace shardc::cuda {
namespace {

/// As it lies in memory.
const char *storedType(DType dtype) {
  static constexpr const char *kNames[] = {"float", "double", "F16", "BF16", "int", "i64", "u8", "u8"};
  return kNames[unsigned(dtype)];
}
/// As it is computed: 16-bit floats are rounded floats.
const char *registerType(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? "float" : storedType(dtype);
}

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

/// A number of that type, bit by bit.
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

class Writer {
public:
  Writer(const ScalarProgram &program, const FusedLayout &layout)
      : program_(program), layout_(layout), used_(usedInstructions(program)), os_(text_) {}

  std::string run() {
    os_ << "// A fused group of shardc." << fusedPrelude();
    arguments();
    os_ << "\nextern \"C\" __global__ void __launch_bounds__(" << kFusedThreads << ") " << kFusedName
        << "(const __grid_constant__ Arguments a) {\n"
           "  constexpr int W = "
        << layout_.width << ";\n";
    once();
    os_ << "  for (Index unit = (Index)blockIdx.x * " << kFusedThreads
        << " + threadIdx.x; unit < (Index)a.units; unit += (Index)gridDim.x * " << kFusedThreads << ") {\n";
    places();
    loads();
    keeps();
    for (size_t o = 0; o < layout_.outputs.size(); ++o)
      os_ << "    Pack<" << storedType(layout_.outputs[o].dtype) << ", W> y" << o << ";\n";
    os_ << "#pragma unroll\n    for (int l = 0; l < W; ++l) {\n";
    for (size_t i = 0; i < program_.code.size(); ++i)
      if (used_[i])
        instruction(i);
    for (size_t o = 0; o < layout_.outputs.size(); ++o)
      os_ << "      put(y" << o << ".at[l], r" << program_.outputs[o] << ");\n";
    os_ << "    }\n";
    for (size_t o = 0; o < layout_.outputs.size(); ++o)
      os_ << "    *(Pack<" << storedType(layout_.outputs[o].dtype) << ", W> *)(("
          << storedType(layout_.outputs[o].dtype) << " *)a.out" << o << " + "
          << place(layout_.outputs[o], "o", o) << ") = y" << o << ";\n";
    os_ << "  }\n}\n";
    return text_;
  }

private:
  void arguments() {
    os_ << "\ntypedef " << (layout_.wide ? "i64" : "int") << " Place;\ntypedef "
        << (layout_.wide ? "u64" : "unsigned")
        << " Index;\n"
           "struct Arguments {\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      os_ << "  const void *in" << i << ";\n";
    for (size_t o = 0; o < layout_.outputs.size(); ++o)
      os_ << "  void *out" << o << ";\n";
    os_ << "  u64 units, elements;\n  const double *scalars;\n";
    for (size_t i = 0; i < program_.code.size(); ++i)
      if (program_.code[i].code == ScalarCode::Keep)
        os_ << "  u64 id" << i << ";\n";
    for (unsigned d = 0; d + 1 < layout_.rank; ++d)
      os_ << "  u64 size" << d << ", magic" << d << ";\n";
    each([&](const FusedOperand &operand, const char *kind, size_t i) {
      if (operand.walked())
        os_ << "  i64 " << kind << "Strides" << i << "[" << layout_.rank << "];\n";
    });
    os_ << "};\n"
           "FN Index quotient(Index n, u64 size, u64 magic) {\n"
        << (layout_.wide ? "  return n / size;\n"
                         : "  return (unsigned)size == 1 ? n : __umulhi(n, (unsigned)magic) >> "
                           "(unsigned)(magic >> 32);\n")
        << "}\n";
  }

  template <typename F> void each(F f) const {
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      f(layout_.inputs[i], "i", i);
    for (size_t o = 0; o < layout_.outputs.size(); ++o)
      f(layout_.outputs[o], "o", o);
  }

  /// Before the loop: what is the same for all elements.
  void once() {
    bool keeps = false;
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      if (layout_.inputs[i].access == FusedAccess::Constant)
        os_ << "  const auto x" << i << " = widen(*(const " << storedType(layout_.inputs[i].dtype)
            << " *)a.in" << i << ");\n";
    for (size_t i = 0; i < program_.code.size(); ++i)
      keeps |= used_[i] && program_.code[i].code == ScalarCode::Keep;
    if (keeps)
      os_ << "  const u64 seed = (u64)a.scalars[" << unsigned(kSeed) << "], shard = (u64)a.scalars["
          << unsigned(kShardIndex) << "];\n  const unsigned step = (unsigned)(u64)a.scalars["
          << unsigned(kStep) << "];\n";
  }

  /// Where the unit lies in each operand that is walked.
  void places() {
    if (layout_.rank == 0)
      return;
    os_ << "    Index left = unit;\n";
    for (unsigned d = 0; d < layout_.rank; ++d) {
      if (d + 1 < layout_.rank)
        os_ << "    const Index q" << d << " = quotient(left, a.size" << d << ", a.magic" << d
            << ");\n    const Place c" << d << " = (Place)(left - q" << d << " * (Index)a.size" << d
            << ");\n    left = q" << d << ";\n";
      else
        os_ << "    const Place c" << d << " = (Place)left;\n";
    }
    each([&](const FusedOperand &operand, const char *kind, size_t i) {
      if (!operand.walked())
        return;
      os_ << "    const Place " << kind << "Place" << i << " = ";
      for (unsigned d = 0; d < layout_.rank; ++d)
        os_ << (d ? " + " : "") << "c" << d << " * (Place)a." << kind << "Strides" << i << "[" << d << "]";
      os_ << ";\n";
    });
  }

  std::string place(const FusedOperand &operand, const char *kind, size_t i) const {
    return operand.walked() ? (llvm::Twine(kind) + "Place" + llvm::Twine(i)).str() : "(i64)unit * W";
  }

  void loads() {
    for (size_t i = 0; i < layout_.inputs.size(); ++i) {
      const FusedOperand &x = layout_.inputs[i];
      const char *type = storedType(x.dtype);
      if (x.access == FusedAccess::WalkedSame)
        os_ << "    const auto x" << i << " = widen(((const " << type << " *)a.in" << i << ")["
            << place(x, "i", i) << "]);\n";
      else if (x.access == FusedAccess::Flat || x.access == FusedAccess::Walked)
        os_ << "    const Pack<" << type << ", W> p" << i << " = *(const Pack<" << type << ", W> *)((const "
            << type << " *)a.in" << i << " + " << place(x, "i", i) << ");\n";
    }
  }

  /// Dropout's factors of the whole unit: four numbers come from one block.
  void keeps() {
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const ScalarInstr &instr = program_.code[i];
      if (!used_[i] || instr.code != ScalarCode::Keep)
        continue;
      const DropoutDraw draw(0, 0, 0, instr.number);
      const char *type = registerType(instr.dtype);
      os_ << "    " << type << " k" << i << "[W];\n    keep<W, " << type << ">(k" << i << ", "
          << (instr.batchMajor ? "shard * a.elements + " : "") << "(u64)unit * W, (unsigned)a.id" << i
          << ", seed, step, " << draw.threshold << "ull, " << literal(instr.dtype, draw.scale) << ");\n";
    }
  }

  std::string arg(const ScalarInstr &instr, unsigned k) const { return "r" + std::to_string(instr.args[k]); }

  void instruction(size_t i) {
    const ScalarInstr &instr = program_.code[i];
    os_ << "      const " << registerType(instr.dtype) << " r" << i << " = ";
    std::string value = valueOf(i);
    // A 16-bit value is rounded where it is defined.
    if (instr.code == ScalarCode::Input || !(instr.dtype == DType::F16 || instr.dtype == DType::BF16))
      os_ << value << ";\n";
    else
      os_ << (instr.dtype == DType::F16 ? "roundF16(" : "roundBF16(") << value << ");\n";
  }

  std::string valueOf(size_t i) const {
    const ScalarInstr &instr = program_.code[i];
    switch (instr.code) {
    case ScalarCode::Input: {
      const FusedAccess access = layout_.inputs[instr.input].access;
      std::string n = std::to_string(instr.input);
      return access == FusedAccess::Constant || access == FusedAccess::WalkedSame ? "x" + n
                                                                                  : "widen(p" + n + ".at[l])";
    }
    case ScalarCode::Number:
      return literal(instr.dtype, instr.number);
    case ScalarCode::Keep:
      return "k" + std::to_string(i) + "[l]";
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

  const ScalarProgram &program_;
  const FusedLayout &layout_;
  std::vector<bool> used_;
  std::string text_;
  llvm::raw_string_ostream os_;
};

unsigned arity(const ScalarInstr &instr) {
  unsigned n = 0;
  while (n < 3 && instr.args[n] >= 0)
    ++n;
  return n;
}

} // namespace

std::string fusedSource(const ScalarProgram &program, const FusedLayout &layout) {
  return Writer(program, layout).run();
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
    const bool good = operand == DType::Bool ? logic || extreme || operatorOf(instr.code)
                                             : !logic && (isFloat(operand) || !floatsOnly(instr.code));
    if (!good)
      return "no kernel for an instruction with type " + toString(operand).str() + " and result " +
             toString(instr.dtype).str();
  }
  return "";
}

} // namespace shardc::cuda
