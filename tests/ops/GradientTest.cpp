// SPDX-License-Identifier: Apache-2.0
// The gradient of every op against central differences in double, for every case: all by the
// reference, or by the kernels where numbers are drawn (the same ones each time).
#include "ir/graph/Verify.h"
#include "ir/ops/Reference.h"
#include "passes/Passes.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace shardc;
using namespace shardc::test;

namespace {

class Gradient : public testing::TestWithParam<const OpDef *> {};

RunOp runnerOf(const OpCase &c) { return c.random ? runKernel : evaluateOp; }

/// Gradients by parameter, of the operands in `wanted` (null: all); an absent one is zero.
std::vector<Tensor> gradients(const OpCase &c, const Value *only, size_t onlyIndex) {
  llvm::Expected<CaseGraph> g = buildCase(c, DType::F64);
  std::vector<Tensor> result;
  if (!g) {
    ADD_FAILURE() << llvm::toString(g.takeError());
    return result;
  }
  if (only)
    for (Parameter &p : g->graph->parameters)
      p.trainable = p.name == "p" + std::to_string(onlyIndex);
  if (llvm::Error error = insertGradients(*g->graph, {})) {
    // A zero gradient (sign, floor ...) leaves no path.
    EXPECT_EQ(llvm::toString(std::move(error)).find("insert-gradients: no trainable parameter"),
              0u);
  }
  g->graph->level = Level::Step;
  if (llvm::Error error = verify(*g->graph))
    ADD_FAILURE() << llvm::toString(std::move(error));
  llvm::Expected<Values> values = interpret(*g->graph, g->feeds, runnerOf(c));
  if (!values) {
    ADD_FAILURE() << llvm::toString(values.takeError());
    return result;
  }
  for (size_t i = 0; i < g->parameters.size(); ++i) {
    if (!g->parameters[i]) {
      result.emplace_back(DType::F64, Dims{});
      continue;
    }
    Value *gradient = g->graph->output("grad:p" + std::to_string(i));
    result.push_back(gradient ? (*values)[gradient]
                              : Tensor(DType::F64, g->parameters[i]->type().dims));
  }
  return result;
}

double loss(const CaseGraph &g, const Values &feeds, RunOp run) {
  Value *out = g.graph->output("loss_sum");
  llvm::Expected<Values> values = interpret(*g.graph, feeds, run, out);
  return values ? (*values)[out].asDouble(0)
                : (ADD_FAILURE() << llvm::toString(values.takeError()), 0);
}

void check(const OpCase &c) {
  llvm::Expected<CaseGraph> g = buildCase(c, DType::F64);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  if (g->graph->parameters.empty() || !g->graph->output("loss_sum"))
    return; // a case of integers
  std::vector<Tensor> analytic = gradients(c, nullptr, 0);
  ASSERT_EQ(analytic.size(), g->parameters.size());
  for (size_t i = 0; i < g->parameters.size(); ++i) {
    Value *parameter = g->parameters[i];
    if (!parameter)
      continue;
    const Tensor &base = g->feeds[parameter];
    std::vector<double> numeric(base.numElements());
    for (int64_t k = 0; k < base.numElements(); ++k) {
      const double step = 1e-5;
      double at[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<double> moved = toDoubles(base);
        moved[k] += side ? -step : step;
        Values feeds = g->feeds;
        feeds[parameter] = fromDoubles(DType::F64, base.dims(), moved);
        at[side] = loss(*g, feeds, runnerOf(c));
      }
      numeric[k] = (at[0] - at[1]) / (2 * step);
    }
    EXPECT_EQ(compare(analytic[i], fromDoubles(DType::F64, base.dims(), numeric), 2e-7), "")
        << "operand " << i;
    // The same when no other operand wants one.
    std::vector<Tensor> alone = gradients(c, parameter, i);
    ASSERT_EQ(alone.size(), analytic.size());
    EXPECT_EQ(compare(alone[i], analytic[i], 1e-12), "") << "operand " << i << " alone";
  }
}

TEST_P(Gradient, equalsCentralDifferences) {
  OpCases cases = casesOf(*GetParam());
  EXPECT_FALSE(cases.empty());
  for (const OpCase &c : cases) {
    SCOPED_TRACE(c.what);
    if (c.smooth)
      check(c);
  }
}

std::vector<const OpDef *> differentiable() {
  std::vector<const OpDef *> ops;
  for (const OpDef *def : allOps())
    if (def->gradient)
      ops.push_back(def);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(differentiable()),
                         [](const auto &info) { return std::string(info.param->mnemonic); });

} // namespace
