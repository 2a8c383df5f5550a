// SPDX-License-Identifier: Apache-2.0
// The loop of training as every rank runs it: rows in, programs run, numbers out.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"
#include "runtime/TrainData.h"
#include "runtime/TrainLog.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <atomic>

namespace shardc {

/// What runs and is told while training.
struct TrainHooks {
  /// After each update, and after each evaluation; may be empty.
  llvm::function_ref<void(const StepReport &, int64_t totalSteps)> onStep;
  llvm::function_ref<void(int64_t step, const EvalReport &)> onEval;
  /// Non-zero: finish the step, save, return. A signal handler sets it.
  const std::atomic<bool> *stop = nullptr;
};

class Communicator;

/// One rank. All ranks call `create`, `openOutputs` and `run`; what they return is the same on all.
class Trainer {
public:
  /// Looks up what a step needs. All three outlive the trainer.
  static llvm::Expected<std::unique_ptr<Trainer>> create(const TrainData &data, Executor &executor,
                                                         Communicator &communicator);
  ~Trainer();

  /// The files that will hold the final weights.
  std::vector<std::string> weightFiles() const;

  /// Rank 0 makes the output folder, begins a new log, and fails if what the run will write at its end could not be
  /// written.
  llvm::Error openOutputs();

  /// Runs what a step runs before its update, so that a device has loaded and laid out all that it will need. Leaves weights and what
  /// the optimizer knows as they are. Requires: weights are loaded; all ranks call it.
  llvm::Error warmUp();

  /// Trains to the end, evaluates, saves weights and results. Requires: weights are loaded, `openOutputs`, no rank has failed
  /// (waitForAll). Called once. Errors have exit code 4; what was logged before is kept. Only rank 0 writes; `onStep` and
  /// `onEval` are called where they are given. `stop` of any rank stops all after the same step.
  llvm::Expected<TrainResults> run(const TrainHooks &hooks);

private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace shardc
