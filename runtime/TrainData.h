// SPDX-License-Identifier: Apache-2.0
// What all ranks of a process train on, opened and checked once before any of them starts.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/BatchOrder.h"
#include "runtime/Dataset.h"
#include "runtime/TrainOptions.h"

namespace shardc {

/// Read only: ranks share it.
struct TrainData {
  /// Opens and checks all data and decides the number of steps. `plan` outlives the result.
  static llvm::Expected<std::unique_ptr<const TrainData>> open(const plan::Plan &plan, const TrainOptions &options);

  const plan::Plan &plan;
  TrainOptions options;
  Dataset rows;
  std::optional<Dataset> evalRows;
  BatchOrder order; ///< each rank goes through a copy
  Schedule schedule;
  std::vector<std::string> notes; ///< what a user should know though it is no error, one line each
};

} // namespace shardc
