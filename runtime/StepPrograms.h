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
  /// Requires: `address` holds one element of `dtype` (f32, f64, i32 or i64).
  Result(const void *address, DType dtype) : address_(address), dtype_(dtype) {}
  explicit operator bool() const { return address_; }
  double read() const;

private:
  const void *address_ = nullptr;
  DType dtype_ = DType::F32;
};

/// train, train_last, update or eval, bound. Absent results stay empty.
struct StepProgram {
  int index = -1;
  Result lossSum, lossCount, correct, gradNorm;

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
