// SPDX-License-Identifier: Apache-2.0
// What a machine reaches, measured by running commands on it as plans do.
#pragma once

#include "ir/plan/Plan.h"
#include "runtime/Executor.h"
#include "llvm/Support/Error.h"

namespace shardc {

class Communicator;

/// How much is run: so that each measurement takes milliseconds on the device in question.
struct CalibrationSizes {
  int64_t rows = 512, columns = 512, inner = 512; ///< of a product
  int products = 4;
  int64_t elements = 1 << 22;      ///< of an array that is read and written
  int64_t largestGather = 4 << 20; ///< bytes of the whole array
};
/// Those of a GPU.
CalibrationSizes deviceCalibrationSizes();

/// Rates in units a second; latencies in microseconds. As the keys of a machine file
/// (passes/README.md).
struct MachineRates {
  double flops = 0, flops16 = 0, flops64 = 0, memoryBandwidth = 0, commandUs = 0;
  // 0: there is one rank.
  double linkBandwidth = 0, linkLatencyUs = 0, overlapSlowdown = 0;
};

/// What `measureMachine` runs: a program for each measurement. No plan of a model, and with no
/// bytes outside its space.
plan::Plan calibrationPlan(unsigned ranks, const CalibrationSizes &sizes);

/// All ranks call it, with an executor of such a plan; the result is the same on all.
llvm::Expected<MachineRates> measureMachine(const CalibrationSizes &sizes, Executor &executor,
                                            Communicator &communicator);

} // namespace shardc
