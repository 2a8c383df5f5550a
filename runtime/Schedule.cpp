// SPDX-License-Identifier: Apache-2.0
#include "runtime/Schedule.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardc {

std::optional<ScheduleType> parseScheduleType(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<ScheduleType>>(text)
      .Case("linear", ScheduleType::Linear)
      .Case("constant", ScheduleType::Constant)
      .Case("cosine", ScheduleType::Cosine)
      .Case("constant_with_warmup", ScheduleType::ConstantWithWarmup)
      .Default(std::nullopt);
}

/// The factor in front of the peak rate; w = warm-up steps, n = all steps, s = this step:
///   s < w:   s / max(1, w)
///   linear:  max(0, (n - s) / max(1, n - w))
///   cosine:  max(0, (1 + cos(pi (s - w) / max(1, n - w))) / 2)
static double factor(const Schedule &schedule, int64_t step) {
  if (schedule.type == ScheduleType::Constant)
    return 1;
  int64_t warmup = schedule.warmupSteps, decay = std::max<int64_t>(1, schedule.totalSteps - warmup);
  if (step < warmup)
    return double(step) / double(std::max<int64_t>(1, warmup));
  if (schedule.type == ScheduleType::Linear)
    return std::max(0.0, double(schedule.totalSteps - step) / double(decay));
  if (schedule.type == ScheduleType::Cosine)
    return std::max(
        0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * (double(step - warmup) / double(decay)))));
  return 1;
}

double Schedule::at(int64_t step) const { return learningRate * factor(*this, step); }

int64_t warmupSteps(int64_t steps, double ratio, int64_t totalSteps) {
  return steps > 0 ? steps : int64_t(std::ceil(double(totalSteps) * ratio));
}

int64_t totalSteps(int64_t maxSteps, double epochs, int64_t stepsPerEpoch) {
  return maxSteps > 0 ? maxSteps : int64_t(std::ceil(epochs * double(stepsPerEpoch)));
}

} // namespace shardc
