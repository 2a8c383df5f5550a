// SPDX-License-Identifier: Apache-2.0
// How every tool says what went wrong, and with which exit code it ends.
#pragma once

#include "llvm/Support/Error.h"

namespace shardc {

/// The last call of every main(): `return reportAndExitCode(run());`. Success gives 0. A mistake is
/// printed on stderr as `shardc: error: PLACE: ...` and `hint: ...`, and gives its exit code (the
/// first one's, where there are several). Results that could not be written to stdout (disk full)
/// are a mistake too.
int reportAndExitCode(llvm::Error error);

} // namespace shardc
