// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/RowsLaunch.h"
#include "runtime/cuda/RowsPhases.h"
#include "runtime/cuda/Walk.h"
#include "runtime/host/Strided.h"

namespace shardc::cuda {
namespace {

constexpr unsigned kMaxWidth = 8;
/// Threads of a row, at most.
constexpr int64_t kMostThreads = 384;
/// The more packs of each operand a thread holds, the more bytes are under way at a time. Two blocks of a multiprocessor have so many
/// threads each while what a thread keeps fits into so many registers: measured on H200.
constexpr struct {
  int64_t threads, registers;
} kSpreads[] = {{384, 84}, {256, 128}};
/// More than two packs pay where a thread keeps nothing but operands, in so few registers, and never more than four.
constexpr int64_t kFewRegisters = 64, kManyPacks = 4;
/// Packs that a thread may hold of each operand.
constexpr int64_t kMostPacks = 32;
constexpr int64_t kMostRows = (int64_t(1) << 31) - 1;

bool allZero(const Dims &strides) {
  return llvm::all_of(strides, [](int64_t s) { return s == 0; });
}

class Layouter {
public:
  Layouter(const host::Binding &b, const host::RowsProgram &program, RowsLaunch &to) : b_(b), p_(program), to_(to) {}

  bool run(host::Checks &c) {
    used_.assign(b_.in.size(), false);
    for (size_t i = 0; i < p_.program.code.size(); ++i)
      if (p_.used[i] && p_.program.code[i].code == ScalarCode::Input)
        used_[p_.program.code[i].input] = true;
    rowDims_.assign(p_.rowDims().begin(), p_.rowDims().end());
    columnDims_.assign(p_.columnDims().begin(), p_.columnDims().end());
    for (size_t i = 0; i < b_.in.size(); ++i) {
      Dims strides;
      host::broadcastStrides(b_.in[i], p_.dims, strides);
      if (!used_[i])
        strides.assign(p_.dims.size(), 0);
      rowStrides_.push_back(Dims(strides.begin(), strides.begin() + p_.axis));
      columnStrides_.push_back(Dims(strides.begin() + p_.axis, strides.end()));
    }
    host::collapse(rowDims_, rowStrides_);
    host::collapse(columnDims_, columnStrides_);
    RowsLayout &layout = to_.layout;
    layout.width = chooseWidth();
    const int64_t packs = p_.length / layout.width;
    int64_t each = (packs + kMostThreads - 1) / kMostThreads;
    if (!c.that(each <= kMostPacks, "rows: got too long ones for one kernel") ||
        !c.that(p_.rows <= kMostRows, "rows: got too many for one kernel"))
      return false;
    spread(packs, each);
    for (size_t i = 0; i < b_.in.size(); ++i) {
      RowsOperand x{b_.in[i].dtype, !allZero(rowStrides_[i]), !allZero(columnStrides_[i])};
      if (x.rows)
        layout.rowRank = rowDims_.size();
      if (x.columns)
        layout.columnRank = columnDims_.size();
      layout.inputs.push_back(x);
    }
    writeWords();
    return true;
  }

private:
  /// Registers that a thread fills for one pack of everything.
  int64_t registersOfPack() const {
    int64_t count = RowsPhases(p_).keptNumbers() * int64_t(to_.layout.width);
    for (size_t i = 0; i < b_.in.size(); ++i)
      if (!allZero(columnStrides_[i]))
        count += int64_t(to_.layout.width) * byteSize(b_.in[i].dtype) / 4;
    return count;
  }

  /// Over at least `each` packs a thread.
  void spread(int64_t packs, int64_t each) {
    const int64_t registers = registersOfPack();
    int64_t block = kSpreads[0].threads;
    const auto fits = [&](int64_t most) { return each < kManyPacks && packs >= 64 * each && 2 * each * registers <= most; };
    while (RowsPhases(p_).keptNumbers() == 0 && fits(kFewRegisters))
      each *= 2;
    for (auto [threads, most] : kSpreads)
      if (fits(most)) {
        each *= 2;
        block = threads;
        break;
      }
    RowsLayout &layout = to_.layout;
    layout.packs = unsigned(each);
    layout.threads = unsigned(((packs + each - 1) / each + 31) / 32 * 32);
    layout.whole = int64_t(layout.threads) * layout.packs * layout.width == p_.length;
    to_.rows = p_.rows;
    to_.parts = llvm::is_contained(p_.kinds, RowKind::Column) ? p_.parts : 0;
    // Few blocks idle in their last turn.
    const int64_t most = std::max<int64_t>(1, block / layout.threads);
    auto slots = [&](int64_t groups) { return (p_.rows + groups * to_.parts - 1) / (groups * to_.parts) * groups; };
    int64_t groups = most;
    for (int64_t g = most; to_.parts && --g > most / 2;)
      if (slots(g) < slots(groups))
        groups = g;
    layout.groups = unsigned(groups);
  }

  /// As many neighbours as the narrowest array has in 16 bytes, if all have so many side by side and all threads of a warp
  /// get some.
  unsigned chooseWidth() const {
    unsigned width = 1;
    for (size_t i = 0; i < b_.in.size(); ++i)
      if (used_[i] && columnStrides_[i].back() == 1)
        width = std::max<unsigned>(width, 16 / byteSize(b_.in[i].dtype));
    for (width = std::min(width, kMaxWidth); width > 1 && (!fits(width) || p_.length < 32 * int64_t(width));)
      width /= 2;
    return width;
  }
  bool fits(int64_t width) const {
    if (columnDims_.back() % width)
      return false;
    for (size_t i = 0; i < b_.in.size(); ++i) {
      const int64_t size = byteSize(b_.in[i].dtype), bytes = std::min<int64_t>(16, width * size);
      const Dims &strides = columnStrides_[i];
      if (allZero(strides))
        continue;
      if (strides.back() != 1 || reinterpret_cast<uintptr_t>(b_.in[i].data) % uint64_t(bytes))
        return false;
      auto steps = [&](int64_t stride) { return stride * size % bytes == 0; };
      if (!llvm::all_of(llvm::ArrayRef(strides).drop_back(), steps) || !llvm::all_of(rowStrides_[i], steps))
        return false;
    }
    for (const host::Array &y : b_.out)
      if (reinterpret_cast<uintptr_t>(y.data) % uint64_t(std::min<int64_t>(16, width * byteSize(y.dtype))))
        return false;
    return true;
  }

  void sizes(const Dims &dims, unsigned rank, int64_t innermost, int64_t limit) {
    for (unsigned d = 0; d + 1 < rank; ++d) {
      const int64_t size = dims[dims.size() - 1 - d] / (d == 0 ? innermost : 1);
      const Divider divider(size, limit);
      to_.words.push_back(size);
      to_.words.push_back(divider.magic | uint64_t(divider.shift) << 32);
    }
  }

  void writeWords() {
    const RowsLayout &layout = to_.layout;
    std::vector<uint64_t> &words = to_.words;
    for (const host::Array &a : b_.in)
      words.push_back(reinterpret_cast<uintptr_t>(a.data));
    for (const host::Array &a : b_.out)
      words.push_back(reinterpret_cast<uintptr_t>(a.data));
    words.push_back(p_.rows);
    words.push_back(p_.length);
    words.push_back(reinterpret_cast<uintptr_t>(b_.scalars));
    for (const ScalarInstr &instr : p_.program.code)
      if (instr.code == ScalarCode::Keep)
        words.push_back(instr.input);
    sizes(rowDims_, layout.rowRank, 1, p_.rows);
    sizes(columnDims_, layout.columnRank, layout.width, p_.length);
    for (size_t i = 0; i < b_.in.size(); ++i)
      for (unsigned d = 0; layout.inputs[i].rows && d < layout.rowRank; ++d)
        words.push_back(rowStrides_[i][rowDims_.size() - 1 - d]);
    for (size_t i = 0; i < b_.in.size(); ++i)
      for (unsigned d = 0; layout.inputs[i].columns && d < layout.columnRank; ++d)
        words.push_back(columnStrides_[i][columnDims_.size() - 1 - d] * (d == 0 ? layout.width : 1));
  }

  const host::Binding &b_;
  const host::RowsProgram &p_;
  RowsLaunch &to_;
  std::vector<bool> used_; ///< inputs
  Dims rowDims_, columnDims_;
  llvm::SmallVector<Dims, 8> rowStrides_, columnStrides_; ///< by input
};

} // namespace

unsigned RowsLaunch::blocks(int64_t resident) const {
  if (parts)
    return unsigned(parts);
  const int64_t turn = layout.groups * std::max<int64_t>(1, resident), turns = (rows + turn - 1) / turn;
  return unsigned((rows + layout.groups * turns - 1) / (layout.groups * turns));
}

bool layOutRows(const host::Binding &b, host::Checks &c, const host::RowsProgram &program, RowsLaunch &to) {
  return Layouter(b, program, to).run(c);
}

} // namespace shardc::cuda
