// SPDX-License-Identifier: Apache-2.0
// The one array through which a running step learns what changes between steps: f64[kNumScalars].
#pragma once

namespace shardc {

/// Slots; the runtime writes them before each program run. The numbers are part of the plan format: append only.
enum ScalarSlot : unsigned {
  kLearningRate = 0,
  kBeta1,
  kBeta2,
  kEpsilon,
  kWeightDecay,
  kMomentum,
  kNesterov,        ///< 0 or 1
  kBiasCorrection1, ///< 1 - beta1^t
  kBiasCorrection2, ///< 1 - beta2^t
  kMaxGradNorm,     ///< 0: no clipping
  kDecayAll,        ///< 0: decay only the bucket's first `decay_end` elements
  kSeed,            ///< an integer below 2^53
  kStep,            ///< t - 1: updates done before this one
  kShardIndex,      ///< micro-step x ranks + rank: which cut of the global batch
  kFirstUpdate,     ///< 1 in the first update: momentum starts as a copy of the gradient
  kRank,            ///< which slice of a sharded array this rank owns
  kNumScalars = 32
};

} // namespace shardc
