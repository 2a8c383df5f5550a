// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/FusedSource.h"
#include "ir/base/Philox.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/FusedPrelude.h"
#include "runtime/cuda/FusedText.h"
#include "runtime/cuda/GeneratedKernel.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc::cuda {
namespace {

class Writer {
public:
  Writer(const ScalarProgram &program, const FusedLayout &layout)
      : program_(program), layout_(layout), used_(usedInstructions(program)), read_(readInstructions(program)), os_(text_) {}

  std::string run() {
    os_ << "// A fused group of shardc." << fusedPrelude();
    arguments();
    os_ << "\nextern \"C\" __global__ void __launch_bounds__(" << kFusedThreads << ") " << kFusedName
        << "(const __grid_constant__ Arguments a) {\n"
           "  constexpr int W = "
        << layout_.width << ";\n";
    os_ << kAwaitStream;
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

  void instruction(size_t i) {
    const ScalarInstr &instr = program_.code[i];
    os_ << "      const " << registerType(instr.dtype) << " r" << i << " = ";
    // A 16-bit value is rounded where it is defined, or where it is put away if nothing else is done with it.
    os_ << (instr.code == ScalarCode::Input || !read_[i] ? valueOf(i) : roundedTo(instr.dtype, valueOf(i))) << ";\n";
  }

  std::string valueOf(size_t i) const {
    const ScalarInstr &instr = program_.code[i];
    if (instr.code == ScalarCode::Keep)
      return "k" + std::to_string(i) + "[l]";
    if (instr.code != ScalarCode::Input)
      return expressionOf(program_, i, [](int16_t reg) { return "r" + std::to_string(reg); });
    const FusedAccess access = layout_.inputs[instr.input].access;
    std::string n = std::to_string(instr.input);
    return access == FusedAccess::Constant || access == FusedAccess::WalkedSame ? "x" + n : "widen(p" + n + ".at[l])";
  }

  const ScalarProgram &program_;
  const FusedLayout &layout_;
  std::vector<bool> used_, read_;
  std::string text_;
  llvm::raw_string_ostream os_;
};

} // namespace

std::string fusedSource(const ScalarProgram &program, const FusedLayout &layout) {
  return Writer(program, layout).run();
}

} // namespace shardc::cuda
