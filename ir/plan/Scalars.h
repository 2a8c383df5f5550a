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
  kSkipUpdate,      ///< 1: nothing is updated; set on the device, where gradients overflowed (0 from the host)
  kNumScalars = 32
};

/// What dynamic loss scaling remembers between steps: f64[kNumScaleStates], zeros at the start of a run.
enum ScaleState : unsigned {
  kScaleExcess = 0, ///< scale / initial scale - 1
  kScaleGood,       ///< updates since the scale changed
  kScaleUpdates,    ///< updates done: t of the optimizer
  kScaleSkipped,    ///< updates skipped
  kNumScaleStates = 4
};
constexpr int kScaleGrowth = 2000;     ///< so many good updates in a row double the scale
constexpr double kMostScale = 0x1p40;  ///< scale / initial scale stays within this and its inverse

} // namespace shardc
