// SPDX-License-Identifier: Apache-2.0
// How much one update is: in tokens and in operations.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

struct StepWork {
  /// Of all ranks and micro-steps: elements of the first input that holds indices into a table
  /// (input_ids; targets, which may be ignored, do not count), padding included. 0: no such input.
  double tokens = 0;
  /// Of one rank, all its micro-steps and the update, as the plan counts them.
  double flops = 0;
};

StepWork workOf(const plan::Plan &plan);

} // namespace shardc
