// SPDX-License-Identifier: Apache-2.0
// Loss and accuracy over a whole data set, with the plan's `eval` program.
#pragma once

#include "runtime/Inputs.h"
#include "runtime/StepPrograms.h"
#include "runtime/TrainLog.h"

namespace shardc {

class Communicator;

/// How many of a data set's rows are evaluated, and a line for the user where some are left out.
struct EvalRows {
  int64_t count = 0;
  std::string note;

  /// Errors: the plan has no `eval` program; too few rows.
  static llvm::Expected<EvalRows> of(const plan::Plan &plan, const Dataset &data);
};

/// One rank's part. All three outlive it.
class Evaluation {
public:
  static llvm::Expected<Evaluation> create(const plan::Plan &plan, Executor &executor, Communicator &communicator,
                                           const Dataset &data);

  /// Every row once: batch b on rank b mod ranks, which all run equally often, since `eval` may gather parameters. A last batch
  /// that is not full is filled up with ignored targets where the plan has such. The same report on all ranks.
  llvm::Expected<EvalReport> run();

private:
  Evaluation(const plan::Plan &plan, Executor &executor, Communicator &communicator, const Dataset &data,
             StepProgram program, int64_t rows);
  llvm::Error feed(int64_t batch);

  Executor *executor_;
  Communicator *communicator_;
  StepProgram program_;
  Inputs inputs_;
  int64_t batch_, rows_;
  std::vector<int64_t> batchRows_;
};

} // namespace shardc
