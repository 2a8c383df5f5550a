// SPDX-License-Identifier: Apache-2.0
// The summand c of a product may lie in the result's own memory: same numbers as from memory of its own.
#include "runtime/host/Narrow.h"
#include "tests/ops/Harness.h"
#include "tests/ops/PrepareKernel.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

/// Result of the case's op by the host kernel, c in the result's memory.
Tensor runInPlace(const CaseGraph &g) {
  llvm::SmallVector<const Tensor *, 4> operands;
  for (const Value *v : g.op->operands())
    operands.push_back(v ? &g.feeds.find(v)->second : nullptr);
  std::unique_ptr<PreparedKernel> prepared = prepareKernel(*g.op, operands, /*strided=*/false);
  host::Binding &binding = prepared->binding;
  prepared->out[0].put(*operands[2]);
  binding.in[2] = binding.out[0];
  binding.scratchBytes = host::scratchBytes(prepared->command, binding.in, binding.out);
  std::vector<double> scratch(binding.scratchBytes / sizeof(double));
  binding.scratch = scratch.data();
  llvm::cantFail(host::bindNarrow(binding))->run();
  return prepared->results()[0];
}

TEST(InPlaceProduct, equalsOneWithMemoryOfItsOwn) {
  int tried = 0;
  for (const OpCase &c : casesOf(kMatMul))
    for (DType dtype : {DType::F32, DType::BF16}) {
      if (c.operands.size() < 3 || c.operands[2].fill == OperandSpec::Absent)
        continue;
      SCOPED_TRACE(c.what + " " + toString(dtype).str());
      llvm::Expected<CaseGraph> g = buildCase(c, dtype);
      ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
      llvm::SmallVector<const Tensor *, 4> operands;
      for (const Value *v : g->op->operands())
        operands.push_back(v ? &g->feeds.find(v)->second : nullptr);
      Tensor apart = (*runKernel(*g->op, operands))[0];
      EXPECT_EQ(compare(runInPlace(*g), apart, 0), "");
      ++tried;
    }
  EXPECT_GE(tried, 10);
}

} // namespace
