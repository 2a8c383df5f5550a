// SPDX-License-Identifier: Apache-2.0
// The `scalars` value as ops see it. The slots are those of ir/plan/Scalars.h, which ir cannot see
// (a test compares them).
#pragma once

#include "ir/ops/Infer.h"

namespace shardc {

inline constexpr const char *kIsUpdate = "it belongs to the update, which has no gradient";

namespace step {
constexpr int64_t kCount = 32;
enum Slot : unsigned {
  kLearningRate = 0,
  kBeta1,
  kBeta2,
  kEpsilon,
  kWeightDecay,
  kMomentum,
  kNesterov,
  kBiasCorrection1,
  kBiasCorrection2,
  kMaxGradNorm,
  kDecayAll,
  kFirstUpdate = 14,
  kRank,
  kSkipUpdate
};
/// What dynamic loss scaling remembers: f64[kScaleStateCount].
constexpr int64_t kScaleStateCount = 4;
enum ScaleState : unsigned { kScaleExcess = 0, kScaleGood, kScaleUpdates, kScaleSkipped };
constexpr int kScaleGrowth = 2000;
constexpr double kMostScale = 0x1p40;
} // namespace step

/// Operand i is the f64 array of the step's scalars.
inline void checkScalars(OpCheck &check, unsigned i) {
  check.isType(i, DType::F64);
  check.hasDims(i, {step::kCount});
}

} // namespace shardc
