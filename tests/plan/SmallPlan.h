// SPDX-License-Identifier: Apache-2.0
// A sound plan of nine buffers and seven commands, written by hand: y = x * w, loss = sum(y * y).
#pragma once

#include "ir/plan/Plan.h"
#include <initializer_list>

namespace shardc {

/// Buffers of the plan; their numbers.
enum SmallBuffer : uint32_t {
  kScalarsBuffer,
  kX,
  kParameters,
  kGradients,
  kM,
  kV,
  kLoss,
  kY,
  kSquares,
  kEvalY,
  kNumSmallBuffers
};

plan::Ref smallRef(uint32_t buffer, std::initializer_list<int64_t> dims, DType dtype = DType::F32);
plan::Plan smallPlan();
/// The same with the backward command on a stream of its own, ordered by events.
plan::Plan twoStreamPlan();

/// The same, its space in two regions: what persists, and what comes and goes.
plan::Plan regionPlan();

/// Sets every version, by the definition in plan.proto, naively. Requires: operands are dense.
void countVersions(plan::Plan &plan);

inline plan::Command &command(plan::Plan &plan, int program, int index) {
  return *plan.mutable_programs(program)->mutable_commands(index);
}

} // namespace shardc
