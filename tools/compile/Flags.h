// SPDX-License-Identifier: Apache-2.0
// The command line of shardc.
#pragma once

#include "frontend/Importer.h"
#include "passes/Options.h"
#include "passes/PassRunner.h"

namespace shardc {

struct Flags {
  std::string model, output, emit; ///< emit: ir, plan or plan-text
  std::string externalDataRoot;
  ImportOptions import;
  CompileOptions compile;
  DebugOptions debug;
  bool estimate = false, largestBatch = false;
  bool machineGiven = false; ///< else the machine follows from target and ranks
  bool ranksGiven = false, zeroGiven = false;
};

/// Ends the process for what parseCommandLine says; values that are wrong are errors.
llvm::Expected<Flags> readFlags(int argc, char **argv);

/// The built-in machine that a plan of so many ranks is priced for.
std::string defaultMachine(llvm::StringRef target, unsigned ranks);

} // namespace shardc
