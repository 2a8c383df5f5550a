// SPDX-License-Identifier: Apache-2.0
// Groups over rows at sizes that several threads share: no bit depends on how many, and the two passes of a sum of columns
// give what one sum in f64 gives.
#include "ir/ops/Reference.h"
#include "runtime/host/Parallel.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr int64_t kRows = 3000, kLength = 96, kParts = 264;

llvm::SmallVector<Tensor, 1> run(int threads) {
  const int before = host::numThreads();
  host::useThreads(threads);
  OpCase c{&kFusedRows, "Test", {x({kRows, kLength}), x({kLength})},
           {{"body", std::string("t0: f32 = rowsum(x0 * x0) / 96; y: bf16 = x0 * x1 / sqrt(t0 + 1); c: f32 = colsum(x0);")},
            {"outputs", std::string("y,t0,c")}, {"dims", Ints{kRows, kLength}}, {"axis", int64_t(1)}, {"parts", kParts}}};
  llvm::Expected<CaseGraph> g = buildCase(c, DType::F32);
  EXPECT_TRUE(bool(g));
  llvm::SmallVector<const Tensor *> operands;
  for (Value *operand : g->op->operands())
    operands.push_back(&g->feeds[operand]);
  llvm::Expected<Tensors> results = runKernel(*g->op, operands);
  host::useThreads(before);
  EXPECT_TRUE(bool(results));
  results->push_back(copyOf(*operands[0]));
  return std::move(*results);
}

TEST(Rows, threadsChangeNoBit) {
  auto one = run(1), several = run(4);
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(one[i], several[i]) << "result " << i;
}

TEST(Rows, partsAddUpToTheSumOfColumns) {
  auto results = run(2);
  std::vector<double> x = toDoubles(results[3]), parts = toDoubles(results[2]);
  ASSERT_EQ(parts.size(), size_t(kParts * kLength));
  for (int64_t i = 0; i < kLength; ++i) {
    double wanted = 0, got = 0;
    for (int64_t r = 0; r < kRows; ++r)
      wanted += x[r * kLength + i];
    for (int64_t p = 0; p < kParts; ++p)
      got += parts[p * kLength + i];
    EXPECT_NEAR(got, wanted, 1e-4) << i;
  }
}

} // namespace
