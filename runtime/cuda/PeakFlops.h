// SPDX-License-Identifier: Apache-2.0
// What data sheets promise of a device.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace shardc::cuda {

/// Operations a second of dense products, by the driver's name of the device and the plan's
/// precision ("fp32", "tf32", "bf16" ...); 0: not known.
double peakFlops(llvm::StringRef device, llvm::StringRef precision);

} // namespace shardc::cuda
