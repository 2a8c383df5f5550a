// SPDX-License-Identifier: Apache-2.0
// Runs passes one after the other; dumps, times and verifies around each.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "passes/Options.h"
#include <chrono>
#include <vector>

namespace shardc {

/// The flags that all tools share for looking inside.
struct DebugOptions {
  std::string printAfter; ///< a pass, "all", "changed", or "": nothing. Goes to stderr.
  std::string stopAfter;  ///< a pass, or ""
  bool timePasses = false;
  bool verifyEach = false;
  std::string dumpDir;    ///< numbered files such as 07-insert-gradients.ir
  std::string reproducer; ///< where the graph before a failing pass goes
};

using Pass = llvm::Error (*)(Graph &, const CompileOptions &);

/// Where a pipeline stands. After a failure or `--stop-after` the remaining calls do nothing.
class PassRunner {
public:
  PassRunner(Graph &graph, const CompileOptions &options, const DebugOptions &debug)
      : graph_(graph), options_(options), debug_(debug) {}
  ~PassRunner();

  void operator()(llvm::StringRef name, Pass pass);
  /// Counts work that is no pass, begun at `start` and ended now, among the times.
  void addTime(llvm::StringRef name, std::chrono::steady_clock::time_point start);
  bool stopped() const { return stopped_; }
  /// The first error, with the pass's name.
  llvm::Error take() { return std::move(error_); }

private:
  void saveReproducer(llvm::StringRef before, llvm::StringRef pass);

  Graph &graph_;
  const CompileOptions &options_;
  const DebugOptions &debug_;
  llvm::Error error_ = llvm::Error::success();
  bool stopped_ = false;
  unsigned number_ = 0;
  std::vector<std::pair<std::string, double>> seconds_;
};

} // namespace shardc
