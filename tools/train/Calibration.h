// SPDX-License-Identifier: Apache-2.0
// --calibrate: a machine file from measurements.
#pragma once

#include "tools/train/Job.h"

namespace shardc {

/// Measures the device, and with several ranks the link between theirs, and writes the file. Ranks
/// are those of --ranks (1), as processes where they are on devices, or those of a launcher. What
/// is not measured is left to the file's `base`.
llvm::Expected<JobResults> runCalibration(const TrainFlags &flags);

} // namespace shardc
