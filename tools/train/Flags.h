// SPDX-License-Identifier: Apache-2.0
// The flags of shardc-train.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/TrainOptions.h"
#include "runtime/Weights.h"

namespace shardc {

struct TrainFlags {
  llvm::ArrayRef<const char *> arguments; ///< all of them
  std::string planPath;
  TrainOptions train;
  WeightsOptions weights;
  std::string device;      ///< --device as given; "": as the plan says
  bool cudaGraphs = true;
  std::optional<std::string> tuning = std::nullopt; ///< file; "": none
  std::string calibrate;   ///< file: no plan is run, a machine is measured; "": none
  unsigned ranks = 0;      ///< --ranks as given; 0: as the plan says
  bool processes = false;  ///< each rank shall be a process of its own
  uint64_t memory = 0;     ///< bytes that a rank may take on its device; 0: any
  std::string trace;       ///< file; "": none
  bool checkRaces = false;
};

/// Parses and checks what can be checked without the plan; ends the process for --help and mistakes
/// of llvm::cl.
llvm::Expected<TrainFlags> parseFlags(int argc, char **argv);

/// Flags that do not fit the plan: another number of ranks, numbers of another optimizer, a device
/// it is not for. `processes`: how many a launcher has started, 0 without one.
llvm::Error checkFlags(const plan::Plan &plan, unsigned processes);

} // namespace shardc
