// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/RowsSource.h"
#include "ir/base/Philox.h"
#include "ir/plan/Scalars.h"
#include "runtime/cuda/FusedPrelude.h"
#include "runtime/cuda/FusedText.h"
#include "runtime/cuda/GeneratedKernel.h"
#include "runtime/cuda/RowsPhases.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace shardc::cuda {
namespace {

constexpr const char *kRowsPrelude = R"(
FN void waitFor(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
template <bool kMax, typename T> FN T joined(T a, T b) {
  if (kMax)
    return a > b || a != a ? a : b;
  return add(a, b);
}
// Of a warp, in every lane.
template <bool kMax, typename T> FN T joinWarp(T value) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2)
    value = joined<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
  return value;
}
FN unsigned quotient(unsigned n, u64 size, u64 magic) {
  return (unsigned)size == 1 ? n : __umulhi(n, (unsigned)magic) >> (unsigned)(magic >> 32);
}
)";

class Writer {
public:
  Writer(const host::RowsProgram &program, const RowsLayout &layout)
      : p_(program), code_(program.program.code), phases_(program), layout_(layout), os_(text_) {}

  std::string run() {
    os_ << "// A fused group of shardc, over rows." << fusedPrelude() << kRowsPrelude;
    arguments();
    os_ << "\nextern \"C\" __global__ void __launch_bounds__(" << layout_.blockThreads() << ", 2) " << kRowsName
        << "(const __grid_constant__ Arguments a) {\n  constexpr int W = " << layout_.width << ", P = " << layout_.packs
        << ", T = " << layout_.threads << ", R = " << layout_.groups
        << ";\n  const int lane = threadIdx.x % T, group = threadIdx.x / T;\n";
    os_ << kAwaitStream;
    once();
    os_ << "  long long row = blockIdx.x + (long long)gridDim.x * group;\n";
    os_ << "  for (; row < a.rows; row += (long long)gridDim.x * R) {\n";
    loads();
    declareKept();
    for (unsigned level = 0; level <= phases_.last(); ++level)
      phase(level);
    os_ << "  }\n";
    columns();
    os_ << "}\n";
    return text_;
  }

private:
  bool isElement(size_t i) const { return p_.kinds[i] == RowKind::Element; }

  void arguments() {
    os_ << "struct Arguments {\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      os_ << "  const void *in" << i << ";\n";
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      os_ << "  void *out" << o << ";\n";
    os_ << "  i64 rows, length;\n  const double *scalars;\n";
    for (size_t i = 0; i < code_.size(); ++i)
      if (code_[i].code == ScalarCode::Keep)
        os_ << "  u64 id" << i << ";\n";
    for (unsigned d = 0; d + 1 < layout_.rowRank; ++d)
      os_ << "  u64 rowSize" << d << ", rowMagic" << d << ";\n";
    for (unsigned d = 0; d + 1 < layout_.columnRank; ++d)
      os_ << "  u64 columnSize" << d << ", columnMagic" << d << ";\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      if (layout_.inputs[i].rows)
        os_ << "  i64 rowStrides" << i << "[" << layout_.rowRank << "];\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      if (layout_.inputs[i].columns)
        os_ << "  i64 columnStrides" << i << "[" << layout_.columnRank << "];\n";
    os_ << "};\n";
  }

  /// Coordinates of `position` as c0, c1 ...
  void coordinates(const char *kind, unsigned rank, const std::string &position) {
    os_ << "    unsigned left = (unsigned)(" << position << ");\n";
    for (unsigned d = 0; d < rank; ++d)
      if (d + 1 < rank)
        os_ << "    const unsigned q" << d << " = quotient(left, a." << kind << "Size" << d << ", a." << kind << "Magic" << d
            << ");\n    const i64 c" << d << " = left - q" << d << " * (unsigned)a." << kind << "Size" << d << ";\n    left = q"
            << d << ";\n";
      else
        os_ << "    const i64 c" << d << " = left;\n";
  }
  std::string along(const char *kind, unsigned rank, size_t i) const {
    std::string sum;
    for (unsigned d = 0; d < rank; ++d)
      sum += (d ? " + c" : "c") + llvm::utostr(d) + " * a." + kind + "Strides" + llvm::utostr(i) + "[" + llvm::utostr(d) + "]";
    return sum;
  }

  std::string ifThere() const { return layout_.whole ? "" : "if (there[p]) "; }

  /// Before the first row: places of packs, what is the same in all rows, sums of columns.
  void once() {
    if (!layout_.whole)
      os_ << "  bool there[P];\n#pragma unroll\n  for (int p = 0; p < P; ++p)\n    there[p] = (p * T + lane) * W < a.length;\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i) {
      const RowsOperand &x = layout_.inputs[i];
      const char *type = storedType(x.dtype);
      if (!isRead(i))
        continue;
      if (x.columns)
        os_ << "  const " << type << " *at" << i << "[P];\n";
      if (x.columns && !x.rows)
        os_ << "  Pack<" << type << ", W> p" << i << "[P];\n";
      if (!x.columns && !x.rows)
        os_ << "  const auto x" << i << " = widen(*(const " << type << " *)a.in" << i << ");\n";
    }
    os_ << "#pragma unroll\n  for (int p = 0; p < P; ++p) {\n";
    if (layout_.columnRank > 0)
      coordinates("column", layout_.columnRank, layout_.whole ? "p * T + lane" : "there[p] ? p * T + lane : 0");
    for (size_t i = 0; i < layout_.inputs.size(); ++i) {
      const RowsOperand &x = layout_.inputs[i];
      const char *type = storedType(x.dtype);
      if (!isRead(i) || !x.columns)
        continue;
      os_ << "    at" << i << "[p] = (const " << type << " *)a.in" << i << " + (" << along("column", layout_.columnRank, i) << ");\n";
      if (!x.rows)
        os_ << "    p" << i << "[p] = *(const Pack<" << type << ", W> *)at" << i << "[p];\n";
    }
    os_ << "  }\n";
    bool keeps = false;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!p_.used[i])
        continue;
      keeps |= code_[i].code == ScalarCode::Keep;
      if (p_.kinds[i] == RowKind::Number)
        os_ << "  const " << registerType(code_[i].dtype) << " r" << i << " = " << valueOf(i) << ";\n";
      if (code_[i].code == ScalarCode::ColumnSum)
        os_ << "  " << registerType(code_[i].dtype) << " s" << i << "[P][W] = {};\n";
    }
    if (phases_.last() > 0 && layout_.threads > 32)
      os_ << "  __shared__ double room[2][R][" << layout_.threads / 32 << "][" << mostJoins() << "];\n  int half = 0;\n";
    if (keeps)
      os_ << "  const u64 seed = (u64)a.scalars[" << unsigned(kSeed) << "], shard = (u64)a.scalars[" << unsigned(kShardIndex)
          << "];\n  const unsigned step = (unsigned)(u64)a.scalars[" << unsigned(kStep) << "];\n";
  }

  bool isRead(size_t input) const {
    for (size_t i = 0; i < code_.size(); ++i)
      if (p_.used[i] && code_[i].code == ScalarCode::Input && code_[i].input == int64_t(input))
        return true;
    return false;
  }
  template <typename F> void eachLoaded(F f) const {
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      if (isRead(i) && layout_.inputs[i].rows)
        f(i, layout_.inputs[i]);
  }

  /// Everything that a row has, before any work on it.
  void loads() {
    bool any = false;
    eachLoaded([&](size_t, const RowsOperand &) { any = true; });
    if (!any)
      return;
    coordinates("row", layout_.rowRank, "row");
    eachLoaded([&](size_t i, const RowsOperand &x) {
      const char *type = storedType(x.dtype);
      os_ << "    const i64 o" << i << " = " << along("row", layout_.rowRank, i) << ";\n";
      if (x.columns)
        os_ << "    Pack<" << type << ", W> p" << i << "[P];\n#pragma unroll\n    for (int p = 0; p < P; ++p)\n      " << ifThere() << "p" << i
            << "[p] = *(const Pack<" << type << ", W> *)(at" << i << "[p] + o" << i << ");\n";
      else
        os_ << "    const " << registerType(x.dtype) << " x" << i << " = widen(((const " << type << " *)a.in" << i << ")[o" << i << "]);\n";
    });
  }

  void declareKept() {
    for (size_t i = 0; i < code_.size(); ++i)
      if (p_.used[i] && isElement(i) && phases_.isKept(i) && code_[i].code != ScalarCode::Keep)
        os_ << "    " << registerType(code_[i].dtype) << " k" << i << "[P][W];\n";
    for (size_t i = 0; i < code_.size(); ++i) {
      const ScalarInstr &instr = code_[i];
      if (!p_.used[i] || instr.code != ScalarCode::Keep)
        continue;
      const DropoutDraw draw(0, 0, 0, instr.number);
      const char *type = registerType(instr.dtype);
      os_ << "    " << type << " k" << i << "[P][W];\n#pragma unroll\n    for (int p = 0; p < P; ++p)\n      keep<W, " << type << ">(k"
          << i << "[p], (u64)(" << (instr.batchMajor ? "shard * (u64)(a.rows * a.length) + " : "")
          << "(u64)row * (u64)a.length + (u64)(p * T + lane) * W), (unsigned)a.id" << i << ", seed, step, " << draw.threshold << "ull, "
          << literal(instr.dtype, draw.scale) << ");\n";
    }
  }

  std::string valueOf(size_t i) const {
    const ScalarInstr &instr = code_[i];
    std::string n = llvm::utostr(i);
    if (instr.code == ScalarCode::Keep)
      return "k" + n + "[p][l]";
    if (instr.code == ScalarCode::Input) {
      std::string x = llvm::utostr(instr.input);
      return layout_.inputs[instr.input].columns ? "widen(p" + x + "[p].at[l])" : "x" + x;
    }
    return roundedTo(instr.dtype, expressionOf(p_.program, i, [](int16_t reg) { return "r" + llvm::utostr(reg); }));
  }

  unsigned mostJoins() const {
    unsigned most = 0;
    for (unsigned level = 0; level <= phases_.last(); ++level) {
      unsigned count = 0;
      for (size_t i = 0; i < code_.size(); ++i)
        count += p_.used[i] && phases_.isJoin(i) && phases_.level(i) == level;
      most = std::max(most, count);
    }
    return most;
  }

  /// Numbers of the row that are known from here on, then what elements contribute.
  void phase(unsigned level) {
    if (level > 0)
      join(level);
    for (size_t i = 0; i < code_.size(); ++i)
      if (p_.used[i] && p_.kinds[i] == RowKind::Row && !phases_.isJoin(i) && phases_.level(i) == level)
        os_ << "    const " << registerType(code_[i].dtype) << " r" << i << " = " << valueOf(i) << ";\n";
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      if (const int16_t reg = p_.program.outputs[o]; p_.kinds[reg] == RowKind::Row && phases_.level(reg) == level)
        os_ << "    if (lane == 0)\n      put(((" << storedType(code_[reg].dtype) << " *)a.out" << o << ")[row], r" << reg << ");\n";
    const std::vector<size_t> needed = phases_.neededAt(level);
    if (needed.empty())
      return;
    for (size_t i = 0; i < code_.size(); ++i)
      if (p_.used[i] && phases_.isJoin(i) && phases_.level(code_[i].args[0]) == level && phases_.level(i) == level + 1)
        os_ << "    " << registerType(code_[i].dtype) << " j" << i << " = "
            << literal(code_[i].dtype, code_[i].code == ScalarCode::RowMax ? -INFINITY : 0) << ";\n";
    os_ << "#pragma unroll\n    for (int p = 0; p < P; ++p) " << ifThere() << "{\n";
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      if (leavesAt(o, level))
        os_ << "      Pack<" << storedType(code_[p_.program.outputs[o]].dtype) << ", W> y" << o << ";\n";
    os_ << "#pragma unroll\n      for (int l = 0; l < W; ++l) {\n";
    for (size_t i : needed)
      element(i, level);
    os_ << "      }\n";
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      if (const char *type = storedType(code_[p_.program.outputs[o]].dtype); leavesAt(o, level))
        os_ << "      *(Pack<" << type << ", W> *)((" << type << " *)a.out" << o << " + row * a.length + (p * T + lane) * W) = y" << o
            << ";\n";
    os_ << "    }\n";
  }

  bool leavesAt(size_t o, unsigned level) const {
    const int16_t reg = p_.program.outputs[o];
    return isElement(reg) && phases_.level(reg) == level;
  }

  void element(size_t i, unsigned level) {
    std::string n = llvm::utostr(i);
    const bool isThere = phases_.isKept(i) && phases_.firstOf(i) < level && code_[i].code != ScalarCode::Keep;
    os_ << "        const " << registerType(code_[i].dtype) << " r" << n << " = " << (isThere ? "k" + n + "[p][l]" : valueOf(i)) << ";\n";
    if (phases_.isKept(i) && phases_.firstOf(i) == level && code_[i].code != ScalarCode::Keep)
      os_ << "        k" << n << "[p][l] = r" << n << ";\n";
    for (size_t j = 0; j < code_.size(); ++j) {
      if (!p_.used[j] || code_[j].args[0] != int16_t(i) || phases_.level(i) != level)
        continue;
      if (phases_.isJoin(j))
        os_ << "        j" << j << " = joined<" << (code_[j].code == ScalarCode::RowMax ? "true" : "false") << ">(j" << j << ", "
            << argument(j) << ");\n";
      else if (code_[j].code == ScalarCode::ColumnSum)
        os_ << "        s" << j << "[p][l] = add(s" << j << "[p][l], " << argument(j) << ");\n";
    }
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      if (p_.program.outputs[o] == int16_t(i) && phases_.level(i) == level)
        os_ << "        put(y" << o << ".at[l], r" << n << ");\n";
  }
  std::string argument(size_t j) const { return "r" + llvm::utostr(code_[j].args[0]); }

  void join(unsigned level) {
    unsigned slot = 0;
    std::string write, read;
    llvm::raw_string_ostream writes(write), reads(read);
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!p_.used[i] || !phases_.isJoin(i) || phases_.level(i) != level)
        continue;
      const char *kind = code_[i].code == ScalarCode::RowMax ? "<true>" : "<false>";
      const char *type = registerType(code_[i].dtype);
      os_ << "    j" << i << " = joinWarp" << kind << "(j" << i << ");\n";
      if (layout_.threads == 32) {
        os_ << "    const " << type << " r" << i << " = j" << i << ";\n";
        continue;
      }
      writes << "      room[half][group][lane / 32][" << slot << "] = j" << i << ";\n";
      reads << "    " << type << " r" << i << " = (" << type << ")room[half][group][0][" << slot << "];\n#pragma unroll\n    for (int w = 1; w < "
            << layout_.threads / 32 << "; ++w)\n      r" << i << " = joined" << kind << "(r" << i << ", (" << type
            << ")room[half][group][w][" << slot << "]);\n";
      ++slot;
    }
    // The halves take turns: who writes one has seen all others leave it.
    waits_ += slot > 0;
    if (slot > 0)
      os_ << "    if (lane % 32 == 0) {\n" << writes.str() << "    }\n    waitFor(group + 1, T);\n" << reads.str() << "    half ^= 1;\n";
  }

  /// The groups of the block add up, in their order.
  void columns() {
    bool any = false;
    for (size_t o = 0; o < p_.program.outputs.size(); ++o)
      any |= p_.kindOf(o) == RowKind::Column;
    if (any && layout_.groups > 1) {
      os_ << "  __shared__ double parts[R - 1][W][T];\n";
      // Groups that had a row less pass as many barriers: racecheck of compute-sanitizer counts them by thread, and sees
      // races over __syncthreads() otherwise.
      if (waits_ > 0)
        os_ << "  if (row - (long long)gridDim.x * group < a.rows)\n    for (int i = 0; i < " << waits_
            << "; ++i)\n      waitFor(group + 1, T);\n";
    }
    for (size_t o = 0; o < p_.program.outputs.size(); ++o) {
      const int16_t reg = p_.program.outputs[o];
      if (p_.kinds[reg] != RowKind::Column)
        continue;
      const char *type = registerType(code_[reg].dtype);
      std::string sums = "s" + llvm::utostr(reg) + "[p][l]";
      os_ << "#pragma unroll\n  for (int p = 0; p < P; ++p) {\n";
      if (layout_.groups > 1)
        os_ << "    if (group > 0)\n#pragma unroll\n      for (int l = 0; l < W; ++l)\n        ((" << type << " *)parts[group - 1][l])[lane] = " << sums
            << ";\n    __syncthreads();\n    if (group == 0)\n#pragma unroll\n      for (int g = 1; g < R; ++g)\n#pragma unroll\n"
               "        for (int l = 0; l < W; ++l)\n          "
            << sums << " = add(" << sums << ", ((" << type << " *)parts[g - 1][l])[lane]);\n    __syncthreads();\n";
      os_ << "    if (group == 0" << (layout_.whole ? "" : " && there[p]") << ") {\n      Pack<" << type << ", W> y;\n#pragma unroll\n"
          << "      for (int l = 0; l < W; ++l)\n        y.at[l] = " << sums << ";\n      *(Pack<" << type << ", W> *)((" << type
          << " *)a.out" << o << " + blockIdx.x * a.length + (p * T + lane) * W) = y;\n    }\n  }\n";
    }
  }

  const host::RowsProgram &p_;
  const std::vector<ScalarInstr> &code_;
  const RowsPhases phases_;
  const RowsLayout &layout_;
  unsigned waits_ = 0; ///< of a group for its own warps, in a row
  std::string text_;
  llvm::raw_string_ostream os_;
};

} // namespace

std::string rowsSource(const host::RowsProgram &program, const RowsLayout &layout) { return Writer(program, layout).run(); }

} // namespace shardc::cuda
