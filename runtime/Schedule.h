// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules with the formulas of Hugging Face's Trainer.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace shardc {

enum class ScheduleType { Linear, Constant, Cosine, ConstantWithWarmup };

/// "linear", "constant", "cosine", "constant_with_warmup".
std::optional<ScheduleType> parseScheduleType(llvm::StringRef text);

struct Schedule {
  ScheduleType type = ScheduleType::Linear;
  double learningRate = 5e-5; ///< the peak
  int64_t warmupSteps = 0;    ///< not used by Constant, as in the Trainer
  int64_t totalSteps = 0;     ///< update steps of the whole run

  /// The rate of update number `step`, counted from 0: with warm-up the first update has rate 0.
  double at(int64_t step) const;
};

/// The Trainer's rule: a positive --warmup-steps wins, else ceil(totalSteps * ratio).
int64_t warmupSteps(int64_t steps, double ratio, int64_t totalSteps);

/// The Trainer's rule: a positive --max-steps wins, else ceil(epochs * stepsPerEpoch).
int64_t totalSteps(int64_t maxSteps, double epochs, int64_t stepsPerEpoch);

} // namespace shardc
