// SPDX-License-Identifier: Apache-2.0
// The flags for looking inside that the compiler and shardc-opt share.
#pragma once

#include "passes/PassRunner.h"
#include "llvm/Support/CommandLine.h"

namespace shardc {

/// Construct one as a static of main.cpp.
class DebugFlags {
public:
  llvm::cl::OptionCategory category{"Looking inside"};
  DebugOptions options() const;

private:
  llvm::cl::opt<std::string> printAfter_{"print-after", llvm::cl::desc("print the IR to stderr after this pass"),
                                         llvm::cl::value_desc("PASS|all|changed"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> stopAfter_{"stop-after", llvm::cl::desc("run no pass after this one; the IR goes to the output"),
                                        llvm::cl::value_desc("PASS"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> timePasses_{"time-passes", llvm::cl::desc("print milliseconds of each pass to stderr"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> verifyEach_{"verify-each", llvm::cl::desc("verify the IR after each pass"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> dumpDir_{"dump-dir", llvm::cl::desc("write the IR after each pass to numbered files"),
                                      llvm::cl::value_desc("DIR"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> reproducer_{"reproducer", llvm::cl::desc("where a pass that fails leaves its input, for shardc-opt"),
                                         llvm::cl::value_desc("FILE"), llvm::cl::cat(category)};
};

} // namespace shardc
