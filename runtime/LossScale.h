// SPDX-License-Identifier: Apache-2.0
// One step of dynamic loss scaling, by the host's kernel and the device's. Read by nvcc too: no LLVM header.
#pragma once

#include "ir/plan/Scalars.h"
#include <cmath>

#ifdef __CUDACC__
#define SHARDC_ANYWHERE __host__ __device__
#else
#define SHARDC_ANYWHERE
#endif

namespace shardc {

struct LossScaleNumbers {
  double norm, gradScale, lossScale, skipped;
};

/// What kernel loss_scale does once the squares are summed. `scalars` [kNumScalars] and `state` [kNumScaleStates] are updated. `initial`,
/// `unit`: gradients are those of unit x scale x the summed loss, and the scale is `initial` first.
SHARDC_ANYWHERE inline LossScaleNumbers stepLossScale(double count, double squares, double initial, double unit, double *scalars,
                                                      double *state) {
  const double relative = state[kScaleExcess] + 1, factor = unit * initial * relative;
  LossScaleNumbers numbers = {0, 0, initial * relative, 0};
  double next = relative;
  const bool finite = squares - squares == 0;
  if (finite) {
    const double t = state[kScaleUpdates] + 1;
    state[kScaleUpdates] = t;
    scalars[kBiasCorrection1] = 1 - pow(scalars[kBeta1], t);
    scalars[kBiasCorrection2] = 1 - pow(scalars[kBeta2], t);
    scalars[kFirstUpdate] = t == 1;
    if (count != 0) {
      numbers.norm = sqrt(squares) / (count * factor);
      numbers.gradScale = 1 / (count * factor);
      if (scalars[kMaxGradNorm] > 0)
        numbers.gradScale *= fmin(1.0, scalars[kMaxGradNorm] / (numbers.norm + 1e-6));
    }
    const bool grows = state[kScaleGood] + 1 == kScaleGrowth;
    state[kScaleGood] = grows ? 0 : state[kScaleGood] + 1;
    if (grows)
      next = fmin(2 * relative, kMostScale);
  } else {
    numbers.norm = sqrt(squares), numbers.skipped = 1;
    state[kScaleGood] = 0;
    state[kScaleSkipped] += 1;
    next = fmax(relative / 2, 1 / kMostScale);
  }
  scalars[kSkipUpdate] = numbers.skipped;
  state[kScaleExcess] = next - 1;
  return numbers;
}

} // namespace shardc
