// SPDX-License-Identifier: Apache-2.0
// All that is printed about a plan, for tests of what it copes with.
#pragma once

#include "ir/plan/MemoryViz.h"
#include "ir/plan/PlanTrace.h"
#include "ir/plan/Report.h"
#include "ir/plan/map/Map.h"
#include "tests/plan/SmallPlan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace shardc {

/// Prints one of all views, by turns.
inline void printView(const plan::Plan &plan, unsigned turn) {
  using View = void (*)(const plan::Plan &, llvm::raw_ostream &);
  const View kViews[] = {
      printPlan, printScreen, printDetails, printCommands, printBuffers, printPeak, printJson, printMemoryViz, printTrace,
      printMapSvg, printMapHtml,
      [](const plan::Plan &p, llvm::raw_ostream &os) { printDiff(p, smallPlan(), "a", "b", os); },
      [](const plan::Plan &p, llvm::raw_ostream &os) {
        for (int b = 0; b < p.buffers_size(); ++b)
          llvm::cantFail(printWhy(p, std::to_string(b), os));
        for (const plan::Parameter &parameter : p.parameters())
          llvm::cantFail(printWhy(p, parameter.name(), os));
      }};
  std::string text;
  llvm::raw_string_ostream os(text);
  View view = kViews[turn % std::size(kViews)];
  view(plan, os);
  EXPECT_FALSE(text.empty());
  if (view == printJson || view == printTrace) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    EXPECT_TRUE(bool(value)) << llvm::toString(value.takeError());
  }
}

} // namespace shardc
