// SPDX-License-Identifier: Apache-2.0
#include "runtime/ScalarSlots.h"
#include "ir/plan/Scalars.h"
#include <cmath>

namespace shardc {

void fillScalars(double *scalars, const Hyperparameters &numbers, double learningRate, int64_t step,
                 bool firstUpdate) {
  double t = double(step + 1);
  scalars[kLearningRate] = learningRate;
  scalars[kBeta1] = numbers.beta1;
  scalars[kBeta2] = numbers.beta2;
  scalars[kEpsilon] = numbers.epsilon;
  scalars[kWeightDecay] = numbers.weightDecay;
  scalars[kMomentum] = numbers.momentum;
  scalars[kNesterov] = numbers.nesterov;
  scalars[kBiasCorrection1] = 1 - std::pow(numbers.beta1, t);
  scalars[kBiasCorrection2] = 1 - std::pow(numbers.beta2, t);
  scalars[kMaxGradNorm] = numbers.maxGradNorm;
  scalars[kDecayAll] = numbers.decayAll;
  scalars[kSeed] = double(numbers.seed);
  scalars[kStep] = double(step);
  scalars[kFirstUpdate] = firstUpdate;
}

void fillRank(double *scalars, int64_t rank) { scalars[kRank] = double(rank); }

void fillShardIndex(double *scalars, int64_t microStep, int64_t ranks, int64_t rank) {
  scalars[kShardIndex] = double(microStep * ranks + rank);
}

} // namespace shardc
