// SPDX-License-Identifier: Apache-2.0
// fused_rows(x0, x1 ...){body, outputs, dims, axis, parts}: a scalar program over rows, instruction by instruction on a whole
// row. What is one number for the row is spread over it.
#include "ir/plan/Scalars.h"
#include "runtime/host/Dropout.h"
#include "runtime/host/FusedLoops.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/RowsProgram.h"
#include "runtime/host/Simd.h"
#include "runtime/host/Strided.h"
#include <limits>
#include <memory>

namespace shardc::host {
namespace {

/// One register in the memory of a thread.
constexpr int64_t kAlignment = 64;

struct RowStep {
  ScalarInstr instr;
  int slot = 0, args[3] = {0, 0, 0}; ///< places of registers; of a ColumnSum: which sums
  Loop loop = nullptr;
  DType operand = DType::F32; ///< of argument 0
};

struct RowOperand {
  char *data;
  DType dtype;
  Walk walk; ///< over all elements
};

template <typename T> void joinRow(ScalarCode code, void *to, const void *from, int64_t n) {
  const T *x = static_cast<const T *>(from);
  T value;
  if (code == ScalarCode::RowSum) {
    value = T(sumOf<T>(n, [=](int64_t i) { return x[i]; }));
  } else {
    value = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i)
      value = (value > x[i]) | (value != value) ? value : x[i];
  }
  std::fill_n(static_cast<T *>(to), n, value);
}

class FusedRows final : public Kernel {
public:
  FusedRows(RowsProgram program, const Binding &b) : p_(std::move(program)), scalars_(b.scalars) {
    for (const Array &x : b.in) {
      Dims strides;
      broadcastStrides(x, p_.dims, strides);
      inputs_.push_back({x.as<char>(), x.dtype, Walk::of(p_.dims, strides)});
    }
    for (const Array &y : b.out)
      outputs_.push_back({y.as<char>(), y.dtype, Walk()});
  }

  /// False: `c` has the complaint.
  bool compile(Checks &c) {
    findUses();
    places_.assign(p_.program.code.size(), 0);
    for (size_t i = 0; i < p_.program.code.size(); ++i)
      if (p_.used[i] && !addStep(i, c))
        return false;
    slotBytes_ = (p_.length * 8 + kAlignment - 1) / kAlignment * kAlignment;
    threadBytes_ = slotBytes_ * (slots_ + columns_) + kAlignment;
    memory_.reset(new char[threadBytes_ * kHostSlots]);
    return true;
  }

  void run() override {
    if (columns_ == 0) {
      parallelFor(p_.rows, 1 + (1 << 13) / p_.length, [&](int64_t begin, int64_t end, int slot) {
        for (int64_t r = begin; r < end; ++r)
          runRow(r, threadMemory(slot));
      });
      return;
    }
    parallelFor(p_.parts, 1, [&](int64_t begin, int64_t end, int slot) {
      for (int64_t part = begin; part < end; ++part)
        runPart(part, threadMemory(slot));
    });
  }

private:
  void findUses() {
    lastUse_.assign(p_.program.code.size(), 0);
    for (size_t i = 0; i < p_.program.code.size(); ++i)
      for (int16_t arg : p_.program.code[i].args)
        if (p_.used[i] && arg >= 0)
          lastUse_[arg] = i;
    for (int16_t output : p_.program.outputs)
      lastUse_[output] = p_.program.code.size();
  }

  bool addStep(size_t i, Checks &c) {
    RowStep step{p_.program.code[i]};
    for (unsigned k = 0; k < 3 && step.instr.args[k] >= 0; ++k)
      step.args[k] = places_[step.instr.args[k]];
    const int16_t first = step.instr.args[0];
    step.operand = first >= 0 ? p_.program.code[first].dtype : step.instr.dtype;
    const bool real = step.instr.dtype == DType::F32 || step.instr.dtype == DType::F64;
    switch (step.instr.code) {
    case ScalarCode::Input:
    case ScalarCode::Number:
      break;
    case ScalarCode::Keep:
      if (!c.that(real && step.instr.number >= 0 && step.instr.number < 1, "keep: wanted type f32 or f64, ratio in [0, 1)"))
        return false;
      break;
    case ScalarCode::RowSum:
    case ScalarCode::RowMax:
    case ScalarCode::ColumnSum:
      if (!c.that(real, "a sum or maximum: wanted type f32 or f64"))
        return false;
      break;
    default: {
      const int16_t exponent = step.instr.args[1];
      if (step.instr.code == ScalarCode::Pow && p_.program.code[exponent].code == ScalarCode::Number)
        step.loop = findPowLoop(p_.program.code[exponent].number, step.instr.dtype);
      if (!step.loop)
        step.loop = findLoop(step.instr.code, step.operand, step.instr.dtype);
      if (!c.that(step.loop, "no host loop for an instruction with type " + toString(step.operand).str() + " and result " +
                                 toString(step.instr.dtype).str()))
        return false;
    }
    }
    step.slot = step.instr.code == ScalarCode::ColumnSum ? columns_++ : take();
    places_[i] = step.slot;
    for (unsigned k = 0; k < 3; ++k)
      if (int16_t arg = step.instr.args[k]; arg >= 0 && lastUse_[arg] == i && lastUse_[arg] != 0) {
        free_.push_back(places_[arg]);
        lastUse_[arg] = 0; // once
      }
    steps_.push_back(step);
    return true;
  }

  int take() { return free_.empty() ? slots_++ : free_.pop_back_val(); }

  char *threadMemory(int slot) const {
    char *memory = memory_.get() + slot * threadBytes_;
    return memory + (kAlignment - reinterpret_cast<uintptr_t>(memory) % kAlignment) % kAlignment;
  }
  char *at(char *memory, int slot) const { return memory + slot * slotBytes_; }
  double *sums(char *memory, int columns) const { return reinterpret_cast<double *>(at(memory, slots_ + columns)); }

  void runPart(int64_t part, char *memory) const {
    for (int k = 0; k < columns_; ++k)
      std::fill_n(sums(memory, k), p_.length, 0.0);
    for (int64_t r = part; r < p_.rows; r += p_.parts)
      runRow(r, memory);
    for (size_t o = 0; o < outputs_.size(); ++o)
      if (p_.kindOf(o) == RowKind::Column)
        storeSums(o, part, sums(memory, places_[p_.program.outputs[o]]));
  }

  void storeSums(size_t o, int64_t part, const double *from) const {
    const RowOperand &y = outputs_[o];
    if (y.dtype == DType::F32)
      std::copy_n(from, p_.length, reinterpret_cast<float *>(y.data) + part * p_.length);
    else
      std::copy_n(from, p_.length, reinterpret_cast<double *>(y.data) + part * p_.length);
  }

  void runRow(int64_t r, char *memory) const {
    for (const RowStep &step : steps_)
      run(step, r, memory);
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const RowOperand &y = outputs_[o];
      const char *from = at(memory, places_[p_.program.outputs[o]]);
      if (p_.kindOf(o) == RowKind::Element)
        std::memcpy(y.data + r * p_.length * byteSize(y.dtype), from, p_.length * byteSize(y.dtype));
      else if (p_.kindOf(o) == RowKind::Row)
        std::memcpy(y.data + r * byteSize(y.dtype), from, byteSize(y.dtype));
    }
  }

  void run(const RowStep &step, int64_t r, char *memory) const {
    const int64_t n = p_.length;
    void *y = step.instr.code == ScalarCode::ColumnSum ? nullptr : at(memory, step.slot);
    const void *a = at(memory, step.args[0]);
    switch (step.instr.code) {
    case ScalarCode::Input: {
      const RowOperand &x = inputs_[step.instr.input];
      return withBits(x.dtype, [&](auto *t) {
        using T = std::remove_pointer_t<decltype(t)>;
        readRuns(x.walk, reinterpret_cast<const T *>(x.data), r * n, (r + 1) * n, static_cast<T *>(y));
      });
    }
    case ScalarCode::Number:
      return fillRegister(y, step.instr.dtype, step.instr.number, n);
    case ScalarCode::Keep: {
      KeepMask mask(scalars_, step.instr.number, step.instr.input);
      uint64_t first = r * n + dropoutStart(step.instr.batchMajor, uint64_t(scalars_[kShardIndex]), p_.rows * n);
      return step.instr.dtype == DType::F32 ? mask.draw(static_cast<float *>(y), first, n)
                                            : mask.draw(static_cast<double *>(y), first, n);
    }
    case ScalarCode::RowSum:
    case ScalarCode::RowMax:
      return step.instr.dtype == DType::F32 ? joinRow<float>(step.instr.code, y, a, n) : joinRow<double>(step.instr.code, y, a, n);
    case ScalarCode::ColumnSum:
      return step.instr.dtype == DType::F32 ? addTo<float>(sums(memory, step.slot), a) : addTo<double>(sums(memory, step.slot), a);
    default:
      return step.loop(y, a, at(memory, step.args[1]), at(memory, step.args[2]), n);
    }
  }

  template <typename T> void addTo(double *to, const void *from) const {
    const T *x = static_cast<const T *>(from);
    for (int64_t i = 0; i < p_.length; ++i)
      to[i] += x[i];
  }

  RowsProgram p_;
  const double *scalars_;
  llvm::SmallVector<RowOperand, 4> inputs_, outputs_;
  std::vector<RowStep> steps_;
  std::vector<size_t> lastUse_; ///< by register
  std::vector<int> places_;     ///< by register, as RowStep::slot
  llvm::SmallVector<int> free_;
  int slots_ = 0, columns_ = 0;
  int64_t slotBytes_ = 0, threadBytes_ = 0;
  std::unique_ptr<char[]> memory_; ///< of all threads
};

} // namespace

BoundKernel bindFusedRows(const Binding &b) {
  Checks c(b);
  RowsProgram program;
  if (!readRowsProgram(b, c, program) ||
      !c.that(program.length <= kMostRowLength, "rows: got too long ones, wanted at most 65536 elements"))
    return c.take();
  auto kernel = std::make_unique<FusedRows>(std::move(program), b);
  if (!kernel->compile(c))
    return c.take();
  return kernel;
}

} // namespace shardc::host
