// SPDX-License-Identifier: Apache-2.0
// Every host kernel against the reference (`evaluateOp`), for every case and every op of its
// gradient: in f32, f64 and 16-bit floats, on dense operands and on strided ones where the op takes these.
#include "ir/ops/Reference.h"
#include "passes/Passes.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

class Kernels : public testing::TestWithParam<const OpDef *> {};

/// Runs the op both ways on the same operands and compares; continues with the reference.
template <RunOp kKernel> llvm::Expected<Tensors> both(const Op &op, TensorArgs operands) {
  llvm::Expected<Tensors> wanted = evaluateOp(op, operands), got = kKernel(op, operands);
  if (!wanted || !got) {
    EXPECT_EQ(bool(wanted), bool(got)) << op.mnemonic().str();
    if (!got)
      ADD_FAILURE() << llvm::toString(got.takeError());
    return wanted;
  }
  for (unsigned i = 0; i < wanted->size(); ++i) {
    // A 16-bit result is rounded once on both sides, from sums that differ a little.
    if (DType dtype = (*wanted)[i].dtype(); isHalf(dtype)) {
      EXPECT_EQ(compare((*got)[i], (*wanted)[i], dtype == DType::F16 ? 0x1p-10 : 0x1p-7), "") << op.mnemonic().str() << ", result " << i;
      continue;
    }
    bool wide = (*wanted)[i].dtype() == DType::F64 && llvm::none_of(operands, [](const Tensor *t) {
                  return t && (t->dtype() == DType::F32 || isHalf(t->dtype()));
                });
    EXPECT_EQ(compare((*got)[i], (*wanted)[i], wide ? 1e-11 : 2e-5), "")
        << op.mnemonic().str() << ", result " << i;
  }
  return wanted;
}

template <RunOp kKernel> void check(const OpCase &c, DType dtype) {
  llvm::Expected<CaseGraph> g = buildCase(c, dtype);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  if (c.def->gradient && g->graph->output("loss_sum"))
    if (llvm::Error error = insertGradients(*g->graph, {}))
      llvm::consumeError(std::move(error)); // no path: only the forward ops run
  llvm::Expected<Values> values = interpret(*g->graph, g->feeds, both<kKernel>);
  EXPECT_TRUE(bool(values)) << llvm::toString(values.takeError());
}

TEST_P(Kernels, equalTheReference) {
  for (const OpCase &c : casesOf(*GetParam())) {
    SCOPED_TRACE(c.what);
    if (c.random) // DropoutTest
      continue;
    check<runKernel>(c, DType::F64);
    check<runKernel>(c, DType::F32);
    check<runStridedKernel>(c, DType::F32);
    for (DType narrow : {DType::BF16, DType::F16}) {
      if (narrow == DType::F16 && !c.smooth) // numbers that it cannot hold
        continue;
      SCOPED_TRACE(toString(narrow).str());
      check<runStridedKernel>(c, narrow);
    }
  }
}

std::vector<const OpDef *> withOperands() {
  std::vector<const OpDef *> ops;
  for (const OpDef *def : allOps())
    if (!def->operands.empty())
      ops.push_back(def);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernels, testing::ValuesIn(withOperands()),
                         [](const auto &info) { return std::string(info.param->mnemonic); });

} // namespace
