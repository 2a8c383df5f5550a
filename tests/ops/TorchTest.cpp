// SPDX-License-Identifier: Apache-2.0
// The reference of composite ops and of the optimizers, and gradients at kinks and ties, against
// what PyTorch computes.
#include "ir/ops/Reference.h"
#include "passes/Passes.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

struct TorchCase {
  OpCase op;
  std::vector<OperandSpec> wanted; ///< results, or gradients of operands; absent: not compared
};

#include "tests/ops/TorchReference.inc"

Tensor tensorOf(const OperandSpec &spec) { return fromDoubles(spec.dtype, spec.dims, spec.values); }

void checkValues(const TorchCase &c) {
  llvm::Expected<CaseGraph> g = buildCase(c.op, DType::F64);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  llvm::SmallVector<const Tensor *> operands;
  for (Value *operand : g->op->operands())
    operands.push_back(operand ? &g->feeds[operand] : nullptr);
  llvm::Expected<Tensors> results = evaluateOp(*g->op, operands);
  ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
  ASSERT_EQ(results->size(), c.wanted.size());
  for (size_t i = 0; i < results->size(); ++i)
    EXPECT_EQ(compare((*results)[i], tensorOf(c.wanted[i]), 1e-13), "") << "result " << i;
}

void checkGradients(const TorchCase &c) {
  llvm::Expected<CaseGraph> g = buildCase(c.op, DType::F64);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  Value *y = g->op->result();
  Ints axes;
  for (int64_t i = 0; i < y->type().rank(); ++i)
    axes.push_back(i);
  g->graph->setOutput("loss_sum", Builder(*g->graph).sum(y, axes, /*keepDims=*/false));
  if (llvm::Error error = insertGradients(*g->graph, {})) {
    // A zero gradient (sign, floor) leaves no path.
    EXPECT_EQ(llvm::toString(std::move(error)).find("insert-gradients: no trainable"), 0u);
  }
  llvm::Expected<Values> values = interpret(*g->graph, g->feeds, evaluateOp);
  ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError());
  for (size_t i = 0; i < c.wanted.size(); ++i) {
    if (c.wanted[i].fill == OperandSpec::Absent)
      continue;
    Value *gradient = g->graph->output("grad:p" + std::to_string(i));
    Tensor wanted = tensorOf(c.wanted[i]);
    EXPECT_EQ(
        compare(gradient ? (*values)[gradient] : Tensor(DType::F64, wanted.dims()), wanted, 1e-13),
        "")
        << "operand " << i;
  }
}

TEST(Torch, valuesAgree) {
  for (const TorchCase &c : kTorchValues) {
    SCOPED_TRACE(std::string(c.op.def->mnemonic) + " " + c.op.what);
    checkValues(c);
  }
}

TEST(Torch, gradientsAtKinksAndTiesAgree) {
  for (const TorchCase &c : kTorchGradients) {
    SCOPED_TRACE(std::string(c.op.def->mnemonic) + " " + c.op.what);
    checkGradients(c);
  }
}

} // namespace
