// SPDX-License-Identifier: Apache-2.0
// What of a run's start is done, and when: shown with -v.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// Prints "   1.23 s  DONE", counted from the program's start.
void noteStartup(llvm::StringRef done);

} // namespace shardc
