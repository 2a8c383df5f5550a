// SPDX-License-Identifier: Apache-2.0
// Options of passes on the command line: "set-dropout{dropout=0.1}". They are those compile options that the pass reads.
#pragma once

#include "llvm/Support/Error.h"
#include "passes/Options.h"

namespace shardc {

/// "dropout=0.1": sets that option. Unknown keys and bad values are errors.
llvm::Error setPassOption(llvm::StringRef option, CompileOptions &options);

} // namespace shardc
