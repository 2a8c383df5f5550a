// SPDX-License-Identifier: Apache-2.0
// Loss and accuracy over a whole data set, with the plan's `eval` program.
#pragma once

#include "runtime/Inputs.h"
#include "runtime/StepPrograms.h"
#include "runtime/TrainLog.h"

namespace shardc {

class Evaluation {
public:
  /// Errors: the plan has no `eval` program; those of Inputs::open; too few rows.
  static llvm::Expected<Evaluation> open(const plan::Plan &plan, Executor &executor,
                                         llvm::ArrayRef<std::string> files);

  /// Rows that are left out, as a line for the user; "" if none are.
  const std::string &note() const { return note_; }

  /// Every row once, in order. A last batch that is not full is filled up with ignored targets
  /// where the plan has such.
  llvm::Expected<EvalReport> run();

private:
  Evaluation(Executor &executor, StepProgram program, Inputs inputs, int64_t batch);

  Executor *executor_;
  StepProgram program_;
  Inputs inputs_;
  int64_t batch_, rows_;
  std::vector<int64_t> batchRows_;
  std::string note_;
};

} // namespace shardc
