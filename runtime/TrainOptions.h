// SPDX-License-Identifier: Apache-2.0
// What a user decides about a training run; the flags of `shardc-train` fill it.
#pragma once

#include "runtime/ScalarSlots.h"
#include "runtime/Schedule.h"
#include <string>
#include <vector>

namespace shardc {

struct TrainOptions {
  std::vector<std::string> data, evalData; ///< files
  int64_t evalSteps = 0; ///< evaluate after each so many updates; 0: only at the end
  int64_t maxSteps = 0;  ///< update steps; 0: by epochs
  double epochs = 0;
  ScheduleType schedule = ScheduleType::Linear;
  double learningRate = 5e-5;
  int64_t warmupSteps = 0;
  double warmupRatio = 0;
  Hyperparameters numbers;
  bool shuffle = true;
  bool stopOnNan = false;
  std::string outputDir;     ///< "": no log, no results file
  std::string saveWeights;   ///< .safetensors; "": none beside the one in `outputDir`
  std::string dumpGradients; ///< .safetensors
};

} // namespace shardc
