// SPDX-License-Identifier: Apache-2.0
// --memory, --batch max and --estimate: what shardc promises about memory, and says where it cannot.
#pragma once

#include "tools/compile/Compiler.h"

namespace shardc {

/// What the flags ask for; with --batch max at the largest batch that fits. Where a budget is broken: an
/// error with exit code 3, after a note of what takes the memory and which changes fit.
llvm::Expected<Compilation> compileWithinBudget(Compiler &compiler, const Flags &flags);

/// How much of --memory a plan takes; nothing where there is no budget.
void printBudget(const Compilation &compilation, const Flags &flags, llvm::raw_ostream &os);

/// The table of --estimate.
llvm::Error printEstimates(Compiler &compiler, const Flags &flags, llvm::raw_ostream &os);

} // namespace shardc
