// SPDX-License-Identifier: Apache-2.0
// Files that shardc-inspect writes.
#pragma once

#include "ir/plan/Plan.h"

namespace shardc {

/// The memory map, as PATH's ending says: .svg or .html; another one is an error.
llvm::Error writeMap(const plan::Plan &plan, llvm::StringRef path);
/// The packing of space 0 to PATH; of a further space n, if anything is in it, to PATH with ".n"
/// before the ending.
llvm::Error writeCsv(const plan::Plan &plan, llvm::StringRef path);

/// Memory over the step, for PyTorch's memory viewer.
llvm::Error writeMemoryViz(const plan::Plan &plan, llvm::StringRef path);
/// The predicted step, for Perfetto.
llvm::Error writeTrace(const plan::Plan &plan, llvm::StringRef path);

} // namespace shardc
