// SPDX-License-Identifier: Apache-2.0
// From the text of a graph to its plan, for tests.
#pragma once

#include "ir/graph/Text.h"
#include "ir/plan/Check.h"
#include "passes/Pipeline.h"
#include <gtest/gtest.h>

namespace shardc {

/// The plan, every graph on the way verified, and sound. A mistake fails the test, and gives an empty plan.
inline plan::Plan compileText(llvm::StringRef text, const CompileOptions &options = {}) {
  auto graph = parseGraph(text, "model");
  if (!graph) {
    ADD_FAILURE() << llvm::toString(graph.takeError());
    return {};
  }
  DebugOptions debug;
  debug.verifyEach = true;
  auto result = compile(std::move(*graph), {}, options, debug);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  EXPECT_EQ(llvm::toString(checkPlan(*result->plan)), "");
  return *result->plan;
}

} // namespace shardc
