// SPDX-License-Identifier: Apache-2.0
// The kernels draw the numbers that ir/base/Philox.h says, for the element that it says.
#include "ir/base/Philox.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace shardc;
using namespace shardc::test;

namespace {

constexpr uint64_t kTestSeed = (uint64_t(7) << 40) + 42;

std::vector<double> stepScalars(double shardIndex) {
  std::vector<double> scalars(kNumScalars);
  scalars[kSeed] = double(kTestSeed);
  scalars[kStep] = 3;
  scalars[kShardIndex] = shardIndex;
  return scalars;
}

Tensor run(const OpCase &c, DType dtype, double shardIndex, CaseGraph *built = nullptr) {
  llvm::Expected<CaseGraph> g = buildCase(c, dtype);
  llvm::SmallVector<const Tensor *> operands;
  for (Value *operand : g->op->operands())
    operands.push_back(operand ? &g->feeds[operand] : nullptr);
  llvm::Expected<Tensors> results = runKernelWith(*g->op, operands, stepScalars(shardIndex));
  if (!results) {
    ADD_FAILURE() << llvm::toString(results.takeError());
    return Tensor(dtype, {});
  }
  if (built)
    *built = std::move(*g);
  return results->front();
}

OpCase dropout(Dims dims, double p, bool batchMajor) {
  return {&kDropout,
          "Test",
          {x(dims)},
          {{"p", p}, {"id", int64_t(9)}, {"batch_major", int64_t(batchMajor)}}};
}

TEST(Dropout, elementsAreKeptAsPhiloxSays) {
  for (DType dtype : {DType::F32, DType::F64})
    for (bool batchMajor : {false, true}) {
      CaseGraph g;
      Tensor y = run(dropout({13, 7, 11}, 0.3, batchMajor), dtype, 2, &g);
      const Tensor &operand = g.feeds[g.op->operand(0)];
      DropoutDraw draw(kTestSeed, 3, 9, 0.3);
      uint64_t start = dropoutStart(batchMajor, 2, y.numElements());
      std::vector<double> wanted = toDoubles(operand);
      for (size_t i = 0; i < wanted.size(); ++i)
        wanted[i] *= draw.factor(start + i);
      EXPECT_EQ(compare(y, fromDoubles(dtype, y.dims(), wanted), 1e-6), "");
    }
}

TEST(Dropout, cutsOfTheBatchDrawWhatTheWholeBatchWould) {
  // Rows [4, 8) of a batch of 8 are the second cut of 4.
  Tensor whole = run(dropout({8, 33}, 0.5, true), DType::F64, 0);
  Tensor second = run(dropout({4, 33}, 0.5, true), DType::F64, 1);
  for (int64_t i = 0; i < second.numElements(); ++i)
    EXPECT_EQ(second.asDouble(i) != 0, whole.asDouble(second.numElements() + i) != 0) << i;
}

TEST(Dropout, groupsOverRowsDrawTheSame) {
  for (int64_t batchMajor : {0, 1}) {
    const std::string keep = "keep(0.3, 9, " + std::to_string(batchMajor) + ")";
    OpCase c{&kFusedRows, "Test", {x({13, 7, 11})},
             {{"body", "t0: f64 = " + keep + " * f64(x0); t1: f64 = rowsum(t0); t2: f64 = t0 + 0 * t1;"}, {"outputs", std::string("t2,t1")},
              {"dims", Ints{13, 7, 11}}, {"axis", int64_t(1)}}};
    CaseGraph g;
    Tensor y = run(c, DType::F64, 2, &g);
    DropoutDraw draw(kTestSeed, 3, 9, 0.3);
    std::vector<double> wanted = toDoubles(g.feeds[g.op->operand(0)]);
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] *= draw.factor(dropoutStart(batchMajor, 2, wanted.size()) + i);
    EXPECT_EQ(compare(y, fromDoubles(DType::F64, y.dims(), wanted), 1e-12), "");
  }
}

TEST(Dropout, attentionDropsProbabilities) {
  const int64_t batch = 2, queries = 3, keys = 5, heads = 2, depth = 4;
  OpCase c{&kAttention,
           "Test",
           {x({batch, queries, heads, depth}), x({batch, keys, heads, depth}),
            x({batch, keys, heads, depth})},
           {{"scale", 0.5}, {"dropout", 0.4}, {"id", int64_t(9)}, {"batch_major", int64_t(1)}}};
  CaseGraph g;
  Tensor out = run(c, DType::F64, 3, &g);
  std::vector<double> q = toDoubles(g.feeds[g.op->operand(0)]),
                      k = toDoubles(g.feeds[g.op->operand(1)]),
                      v = toDoubles(g.feeds[g.op->operand(2)]);
  DropoutDraw draw(kTestSeed, 3, 9, 0.4);
  uint64_t element = dropoutStart(true, 3, batch * heads * queries * keys);
  std::vector<double> wanted(out.numElements());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        double weights[keys], sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < depth; ++d)
            dot += q[((b * queries + i) * heads + h) * depth + d] *
                   k[((b * keys + j) * heads + h) * depth + d];
          sum += weights[j] = std::exp(0.5 * dot);
        }
        for (int64_t j = 0; j < keys; ++j, ++element)
          for (int64_t d = 0; d < depth; ++d)
            wanted[((b * queries + i) * heads + h) * depth + d] +=
                weights[j] / sum * draw.factor(element) *
                v[((b * keys + j) * heads + h) * depth + d];
      }
  EXPECT_EQ(compare(out, fromDoubles(DType::F64, out.dims(), wanted), 1e-12), "");
}

} // namespace
