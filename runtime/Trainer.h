// SPDX-License-Identifier: Apache-2.0
// The loop of training: rows in, programs run, numbers out.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/BatchOrder.h"
#include "runtime/Dataset.h"
#include "runtime/Executor.h"
#include "runtime/TrainLog.h"
#include "runtime/TrainOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <csignal>

namespace shardc {

/// What runs and is told while training.
struct TrainHooks {
  /// After each update, and after each evaluation; may be empty.
  llvm::function_ref<void(const StepReport &, int64_t totalSteps)> onStep;
  llvm::function_ref<void(int64_t step, const EvalReport &)> onEval;
  /// Non-zero: finish the step, save, return. A signal handler sets it.
  const volatile std::sig_atomic_t *stop = nullptr;
};

class Trainer {
public:
  /// Opens and checks all data and decides the number of steps. The plan is of one rank. `plan` and
  /// `executor` outlive the trainer.
  static llvm::Expected<std::unique_ptr<Trainer>> create(const plan::Plan &plan, Executor &executor,
                                                         const TrainOptions &options);
  ~Trainer();

  int64_t totalSteps() const;
  /// What a user should know though it is no error, one line each.
  llvm::ArrayRef<std::string> notes() const;
  /// The files that will hold the final weights.
  std::vector<std::string> weightFiles() const;

  /// Makes the output folder, begins a new log, and fails if what the run will write at its end
  /// could not be written.
  llvm::Error openOutputs();

  /// Trains to the end, evaluates, saves weights and results. Requires: weights are loaded,
  /// `openOutputs`. Called once. Errors have exit code 4; what was logged before is kept.
  llvm::Expected<TrainResults> run(const TrainHooks &hooks);

private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  llvm::Error finish(const TrainResults &results);
  std::unique_ptr<State> state_;
};

} // namespace shardc
