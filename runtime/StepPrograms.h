// SPDX-License-Identifier: Apache-2.0
// The programs of a plan with their results looked up once: what a step calls.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"

namespace shardc {

/// A scalar that a program leaves in memory.
class Result {
public:
  Result() = default;
  /// Requires: `offset` of `buffer` holds one element of `dtype` (f32, f64, i32 or i64).
  Result(Executor &executor, uint32_t buffer, uint64_t offset, DType dtype)
      : executor_(&executor), buffer_(buffer), offset_(offset), dtype_(dtype) {}
  explicit operator bool() const { return executor_; }
  /// What it is behind all that was begun: `value` says it when Executor::finish has returned. Errors: of a device.
  llvm::Error fetch();
  double value() const; ///< 0 where it is absent

private:
  Executor *executor_ = nullptr;
  uint32_t buffer_ = 0;
  uint64_t offset_ = 0;
  DType dtype_ = DType::F32;
  char bytes_[sizeof(double)] = {}; ///< what was fetched
};

/// What a program left; 0 where it leaves none.
struct StepResults {
  double lossSum = 0, lossCount = 0, correct = 0, gradNorm = 0;
  double gradientScale = 1, lossScale = 0, skipped = 0; ///< of fp16: gradients are those of the sum, so many times larger
  /// Where all targets are ignored: no loss, no gradient.
  double loss() const { return lossCount > 0 ? lossSum / lossCount : 0; }
};

/// train, train_last, update or eval, bound. Absent results stay empty.
struct StepProgram {
  int index = -1;
  Result lossSum, lossCount, correct, gradNorm, gradientScale, lossScale, skipped;

  /// What a run that was begun leaves, before anything else is begun; `results` says it when Executor::finish has returned. It may not
  /// move in between.
  llvm::Error fetch();
  StepResults results() const;
  static llvm::Expected<StepProgram> find(const plan::Plan &plan, Executor &executor,
                                          llvm::StringRef name);
};

/// The micro-steps of an update, in order: train, or train_first, train_middle as often as it takes, train_last.
struct TrainPrograms {
  std::vector<int> microSteps; ///< index of the program of each
  StepProgram last;            ///< its loss is that of all ranks and micro-steps

  static llvm::Expected<TrainPrograms> find(const plan::Plan &plan, Executor &executor);
};

} // namespace shardc
