// SPDX-License-Identifier: Apache-2.0
// Small plans for several ranks and streams, written by hand: y = x w over one bucket, loss = sum of y^2.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"
#include "tests/plan/SmallPlan.h"
#include <vector>

namespace shardc {

/// Puts a plan together; commands go to the last program.
class PlanWriter {
public:
  explicit PlanWriter(unsigned ranks);
  /// A buffer in memory of its own, after those before; `elements` f32.
  uint32_t buffer(const char *name, plan::BufferKind kind, int64_t elements, bool persistent);
  void program(const char *name);
  plan::Command &command(const char *kernel, unsigned stream, std::vector<plan::Ref> inputs, std::vector<plan::Ref> outputs);
  /// A pointwise command over x0, x1 ...: "t0: f32 = x0 * x1;".
  plan::Command &fused(const char *body, std::vector<plan::Ref> inputs, plan::Ref output);
  /// Sum of a flat array.
  plan::Command &sum(plan::Ref input, plan::Ref output);
  /// On stream and communicator `stream`.
  plan::Command &collective(const char *kernel, unsigned stream, std::vector<plan::Ref> inputs, plan::Ref output);
  /// `after` signals a new event that `then` waits for.
  void order(plan::Command &after, plan::Command &then);
  /// collective_done that waits for the start.
  plan::Command &done(plan::Command &start);
  plan::Plan take();

private:
  plan::Plan plan_;
};

/// Slice r of a flat array of `ranks` x n elements.
plan::Ref sliceRef(uint32_t buffer, int64_t n);

/// What the plans below have in common; 4 elements a slice.
struct RankPlan {
  plan::Plan plan;
  uint32_t x, loss, parameters, gradients;
  bool slices = false; ///< the buffers of parameters and gradients hold this rank's slice only
};
constexpr int64_t kSliceElements = 4;

/// As stage 3: gathers the parameters, reduces gradients into a slice, sums the loss; three streams.
RankPlan slicedPlan(unsigned ranks);
/// As stage 1: full buffers; reduces in place, updates slice r, gathers in place.
RankPlan inPlacePlan(unsigned ranks);

/// Element i of the whole bucket at the start, and of rank r's input.
inline float startOf(int64_t i) { return 0.5f + 0.25f * float(i % 3); }
inline float inputOf(unsigned rank, int64_t i, int step) { return float((int64_t(rank) + 2 * i + step) % 5) - 1; }

/// Writes the parameters' starting values, of this rank's slice where it has no more.
void setParameters(const RankPlan &p, Executor &executor);
/// The inputs of a step.
void setInputs(const RankPlan &p, Executor &executor, int step);
/// The loss over all ranks in each step, and the whole bucket after the last one, by plain loops.
std::vector<float> wantedLosses(unsigned ranks, int steps, std::vector<float> &parameters);

} // namespace shardc
