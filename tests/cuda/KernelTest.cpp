// SPDX-License-Identifier: Apache-2.0
// Every CUDA kernel against the reference (`evaluateOp`), for every case and every op of its gradient: in f32, on dense operands
// and on strided ones where the op takes these.
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "passes/Passes.h"
#include "runtime/cuda/Kernel.h"
#include "tests/cuda/OnDevice.h"
#include "tests/ops/PrepareKernel.h"

using namespace shardc;
using namespace shardc::test;

namespace {

class CudaKernels : public testing::TestWithParam<const OpDef *> {};

/// Runs the op both ways on the same operands and compares; continues with the reference. An op that has no CUDA kernel, or none
/// for these types, is not compared.
template <bool kStrided> llvm::Expected<Tensors> both(const Op &op, TensorArgs operands) {
  llvm::Expected<Tensors> wanted = evaluateOp(op, operands);
  if (!wanted || !hasKernel(op) || !cuda::findKernel(kernelOf(op.def())))
    return wanted;
  llvm::Expected<Tensors> got = runOnDevice(op, operands, std::vector<double>(kNumScalars), kStrided);
  if (!got) {
    ADD_FAILURE() << op.mnemonic().str() << ": " << llvm::toString(got.takeError());
    return wanted;
  }
  for (unsigned i = 0; i < wanted->size(); ++i)
    EXPECT_EQ(compare((*got)[i], (*wanted)[i], 3e-5), "") << op.mnemonic().str() << ", result " << i;
  return wanted;
}

template <bool kStrided> void check(const OpCase &c) {
  llvm::Expected<CaseGraph> g = buildCase(c, DType::F32);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  if (c.def->gradient && g->graph->output("loss_sum"))
    if (llvm::Error error = insertGradients(*g->graph, {}))
      llvm::consumeError(std::move(error)); // no path: only the forward ops run
  llvm::Expected<Values> values = interpret(*g->graph, g->feeds, both<kStrided>);
  EXPECT_TRUE(bool(values)) << llvm::toString(values.takeError());
}

TEST_P(CudaKernels, equalTheReference) {
  SHARDC_NEEDS_DEVICE();
  for (const OpCase &c : casesOf(*GetParam())) {
    SCOPED_TRACE(c.what);
    if (c.random)
      continue;
    check<false>(c);
    check<true>(c);
  }
}

std::vector<const OpDef *> withKernels() {
  std::vector<const OpDef *> ops;
  for (const OpDef *def : allOps())
    if (!def->operands.empty() && cuda::findKernel(kernelOf(*def)))
      ops.push_back(def);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaKernels, testing::ValuesIn(withKernels()),
                         [](const auto &info) { return std::string(info.param->mnemonic); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaKernels);

} // namespace
