// SPDX-License-Identifier: Apache-2.0
// Fills the array through which a step learns its numbers (slots: ir/plan/Scalars.h).
#pragma once

#include <cstdint>

namespace shardc {

/// What stays the same over a run. Names and defaults are those of Hugging Face's Trainer.
struct Hyperparameters {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0;
  bool decayAll = false; ///< 1-D parameters decay too
  double momentum = 0;
  bool nesterov = false;
  double maxGradNorm = 1; ///< 0: no clipping
  uint64_t seed = 42;     ///< below 2^53: it travels as a double
};

/// Requires: `scalars` is f64[kNumScalars]. `step` counts updates from 0; `firstUpdate`: the
/// optimizer's state is fresh. Bias corrections are computed in double, as torch does.
void fillScalars(double *scalars, const Hyperparameters &numbers, double learningRate, int64_t step,
                 bool firstUpdate);

/// Which slice of sharded arrays is ours: the same all the time.
void fillRank(double *scalars, int64_t rank);

/// The one slot that changes between the micro-steps of an update.
void fillShardIndex(double *scalars, int64_t microStep, int64_t ranks, int64_t rank);

} // namespace shardc
