// SPDX-License-Identifier: Apache-2.0
// Sizes that the cases of tests/ops do not have: rows in many threads, blocks that share sums, 16-byte
// accesses and rows that allow none, transposes by tiles; in every float type, against the host in f64.
#include "ir/plan/Scalars.h"
#include "tests/cuda/Call.h"

using namespace shardc;
using namespace shardc::test;

namespace {

CallOperand x(llvm::ArrayRef<int64_t> dims, unsigned seed = 1) { return {randomFloats(dims, seed)}; }
CallOperand positive(llvm::ArrayRef<int64_t> dims) {
  CallOperand operand = x(dims, 9);
  for (int64_t i = 0; i < operand.value.numElements(); ++i) {
    double &v = operand.value.mutableData<double>()[i];
    v = std::fabs(v) / 2 + 0.5;
  }
  return operand;
}

TEST(LargeKernels, copy) {
  SHARDC_NEEDS_DEVICE();
  struct {
    Dims dims;
    std::vector<int64_t> order;
    int64_t gap;
  } const kLayouts[] = {
      {{65, 130}, {1, 0}, 1},           {{3, 64, 96}, {0, 2, 1}, 1}, {{2, 40, 3, 64}, {0, 2, 1, 3}, 1},
      {{2, 3, 37, 5}, {3, 2, 1, 0}, 2}, {{7, 1001}, {0, 1}, 1},      {{33, 7, 9}, {2, 0, 1}, 1}};
  for (auto &[dims, order, gap] : kLayouts)
    expectLikeHost(Call{"copy", {}, {{randomFloats(dims), order, gap}}, {{dims}}}, 0);
}

TEST(LargeKernels, concat) {
  SHARDC_NEEDS_DEVICE();
  expectLikeHost(
      Call{"concat", {}, {x({5, 64, 32}), x({5, 3, 32}, 2), x({5, 1, 32}, 3)}, {{{5, 68, 32}}}}.with(
          "axis", int64_t(1)),
      0);
  expectLikeHost(Call{"concat", {}, {x({70, 33}), x({70, 1}, 2)}, {{{70, 34}}}}.with("axis", int64_t(-1)), 0);
  // Elements of several arrays beside each other: rows of 16 bytes, and such as are none.
  for (int64_t row : {64, 24, 7})
    for (unsigned sources : {2, 3, 8, 9}) {
      Call call{"concat", {}, {}, {{{3, 50, row, int64_t(sources)}}}};
      for (unsigned i = 0; i < sources; ++i)
        call.in.push_back(x({3, 50, row, 1}, 1 + i));
      expectLikeHost(call.with("axis", int64_t(3)), 0);
    }
}

TEST(LargeKernels, gather) {
  SHARDC_NEEDS_DEVICE();
  for (int64_t inner : {1, 24, 129}) {
    expectLikeHost(
        Call{"gather", {}, {x({3, 50, inner}), {randomIndices({4, 45}, -50, 50)}}, {{{3, 4, 45, inner}}}}
            .with("axis", int64_t(1)),
        0);
    // f64 on the host, sums of few terms on the device: the order is the same.
    expectLikeHost(Call{"gather_grad",
                        {},
                        {x({3, 4, 145, inner}), {randomIndices({4, 145}, -50, 50)}},
                        {{{3, 50, inner}}}}
                       .with("axis", int64_t(1))
                       .with("size", int64_t(50)),
                   4);
  }
  expectLikeHost(Call{"gather_grad", {}, {x({700, 600}), {randomIndices({700}, 0, 9)}}, {{{9, 600}}}}
                     .with("axis", int64_t(0))
                     .with("size", int64_t(9)),
                 20);
}

TEST(LargeKernels, gatherElements) {
  SHARDC_NEEDS_DEVICE();
  Tensor indices = randomIndices({6, 20, 100}, -64, 64);
  expectLikeHost(Call{"gather_elements",
                      {},
                      {{randomFloats({6, 20, 64}), {2, 0, 1}}, {indices, {0, 2, 1}}},
                      {{{6, 20, 100}}}}
                     .with("axis", int64_t(2)),
                 0);
  expectLikeHost(
      Call{"gather_elements_grad", {}, {{randomFloats({6, 20, 100}), {1, 0, 2}}, {indices}}, {{{6, 20, 64}}}}
          .with("axis", int64_t(2))
          .with("size", int64_t(64)),
      8);
  // Lines along an outer dim, and one whose sums do not fit into shared memory.
  expectLikeHost(
      Call{"gather_elements_grad", {}, {x({100, 33}), {randomIndices({100, 33}, 0, 7)}}, {{{7, 33}}}}
          .with("axis", int64_t(0))
          .with("size", int64_t(7)),
      16);
  expectLikeHost(
      Call{"gather_elements_grad", {}, {x({2, 500}), {randomIndices({2, 500}, 0, 20000)}}, {{{2, 20000}}}}
          .with("axis", int64_t(1))
          .with("size", int64_t(20000)),
      4);
}

TEST(LargeKernels, scatter) {
  SHARDC_NEEDS_DEVICE();
  for (llvm::StringRef reduction : {"add", "max"}) {
    expectLikeHost(Call{"scatter_elements",
                        {},
                        {x({9, 40}), {randomIndices({9, 130}, -40, 40)}, x({9, 130}, 3)},
                        {{{9, 40}}}}
                       .with("axis", int64_t(1))
                       .with("reduction", reduction),
                   8);
    for (int64_t line : {3, 70})
      expectLikeHost(Call{"scatter_nd",
                          {},
                          {x({6, 5, line}), {randomIndices({90, 2}, -5, 5)}, x({90, line}, 3)},
                          {{{6, 5, line}}}}
                         .with("reduction", reduction),
                     8);
  }
  for (int64_t axis : {0, 1})
    expectLikeHost(Call{"cum_sum", {}, {x({75, 71})}, {{{75, 71}}}}
                       .with("axis", axis)
                       .with("exclusive", axis)
                       .with("reverse", axis),
                   20);
}

TEST(LargeKernels, reductions) {
  SHARDC_NEEDS_DEVICE();
  struct {
    Dims dims;
    std::vector<int64_t> axes;
    Dims result;
  } const kShapes[] = {{{5000, 64}, {0}, {64}},        {{5000, 63}, {0}, {63}},
                       {{33, 5000}, {1}, {33}},        {{700, 300}, {0, 1}, {}},
                       {{40, 30, 256}, {0, 1}, {256}}, {{12, 300, 40}, {1}, {12, 40}},
                       {{20, 30, 40}, {0, 2}, {30}}};
  for (auto &[dims, axes, result] : kShapes) {
    expectLikeHost(Call{"reduce_sum", {}, {x(dims)}, {{result}}}.with("axes", axes), 10);
    for (const char *kernel : {"reduce_max", "reduce_min"})
      expectLikeHost(Call{kernel, {}, {x(dims)}, {{result}}}.with("axes", axes), 0);
  }
  expectLikeHost(Call{"reduce_sum", {}, {{randomFloats({50, 60, 30}), {2, 1, 0}, 2}}, {{{60}}}}.with(
                     "axes", std::vector<int64_t>{0, 2}),
                 10);
  Tensor integers = randomIndices({600, 70}, -1000000000000, 1000000000000);
  expectLikeHost(
      Call{"reduce_prod", {}, {{integers}}, {{{70}, DType::I64}}}.with("axes", std::vector<int64_t>{0}), 0);
}

TEST(LargeKernels, softmax) {
  SHARDC_NEEDS_DEVICE();
  for (int64_t length : {1, 31, 128, 1000, 1024, 5001, 33000}) {
    const Dims dims{2, 5, length};
    for (const char *kernel : {"softmax", "log_softmax"}) {
      expectLikeHost(Call{kernel, {}, {x(dims)}, {{dims}}, {{0, 0}}}, 3);
      expectLikeHost(Call{kernel, {}, {{randomFloats(dims), {1, 0, 2}}}, {{dims}}}, 3);
    }
    expectLikeHost(Call{"softmax_grad", {}, {x(dims), x(dims, 2)}, {{dims}}, {{0, 1}}}, 10 + length / 20.0);
  }
}

void normCalls(int64_t rows, int64_t length) {
  SCOPED_TRACE(length);
  const Dims dims{rows, length}, row{length}, column{rows};
  CallOperand mean = x(column, 4), rstd = positive(column);
  mean.wide = rstd.wide = true;
  const CallResult y{dims}, statistic{column, DType::F64, true}, parameter{row};
  expectLikeHost(Call{"layer_norm", {}, {x(dims), x(row, 2), x(row, 3)}, {y, statistic, statistic}, {{0, 0}}}
                     .with("axis", int64_t(1))
                     .with("eps", 1e-5),
                 5);
  expectLikeHost(
      Call{"layer_norm", {}, {x(dims)}, {y, statistic, statistic}}.with("axis", int64_t(1)).with("eps", 1e-5),
      5);
  expectLikeHost(Call{"rms_norm", {}, {{randomFloats(dims)}, x(row, 2)}, {y, statistic}}
                     .with("axis", int64_t(1))
                     .with("eps", 1e-5),
                 5);
  const double sums = 5 + std::sqrt(double(rows)) * 3;
  expectLikeHost(Call{"layer_norm_grad",
                      {},
                      {x(dims), x(dims, 2), mean, rstd, x(row, 3)},
                      {y, parameter, parameter},
                      {{0, 0}}}
                     .with("axis", int64_t(1))
                     .with("affine", int64_t(1)),
                 sums);
  expectLikeHost(Call{"layer_norm_grad", {}, {x(dims), x(dims, 2), mean, rstd}, {y}}
                     .with("axis", int64_t(1))
                     .with("affine", int64_t(0)),
                 5);
  expectLikeHost(Call{"rms_norm_grad", {}, {x(dims), x(dims, 2), rstd, x(row, 3)}, {y, parameter}, {{0, 1}}}
                     .with("axis", int64_t(1))
                     .with("affine", int64_t(1)),
                 sums);
}

TEST(LargeKernels, norms) {
  SHARDC_NEEDS_DEVICE();
  for (auto [rows, length] :
       {std::pair<int64_t, int64_t>{2000, 64}, {300, 1024}, {301, 1536}, {40, 1027}, {9, 20000}})
    normCalls(rows, length);
}

const llvm::StringRef kBody =
    "t0: STORED = WIDE(x0) * WIDE(x1) + WIDE(x2); t1: STORED = tanh(WIDE(t0)) - WIDE(x0); "
    "t2: STORED = max(WIDE(t1), 0.25) * keep(0.25, 7, 1) + keep(0.5, 8, 0)";

Call fused(std::vector<CallOperand> in, const Dims &dims, unsigned results = 2) {
  Call call{"fused", {}, std::move(in), {}};
  for (unsigned i = 0; i < results; ++i)
    call.out.push_back({dims});
  call.with("body", kBody).with("outputs", llvm::StringRef(results == 2 ? "t1,t2" : "t2"));
  return call;
}

TEST(LargeKernels, fused) {
  SHARDC_NEEDS_DEVICE();
  std::vector<double> scalars(kNumScalars);
  scalars[kSeed] = double((uint64_t(7) << 40) + 42);
  scalars[kStep] = 3;
  scalars[kShardIndex] = 2;
  for (const Dims &dims : {Dims{6, 50, 64}, Dims{5, 7, 9}, Dims{3, 1000, 2}, Dims{40, 40, 40}}) {
    const Dims row{dims[2]}, column{dims[0], 1, 1}, middle{dims[1], 1};
    // All dense, in place; rows and columns; strides of every kind.
    Call dense = fused({x(dims), x(dims, 2), x(dims, 3)}, dims, 1);
    dense.inPlace = {{0, 1}};
    expectLikeHost(dense, 4, scalars);
    expectLikeHost(fused({x(dims), x(row, 2), x(column, 3)}, dims), 4, scalars);
    expectLikeHost(fused({x(middle), x({}, 2), x(dims, 3)}, dims), 4, scalars);
    expectLikeHost(fused({x(row), x(middle, 2), x({}, 3)}, dims), 4, scalars);
    expectLikeHost(fused({{randomFloats(dims), {1, 0, 2}},
                          {randomFloats(dims, 2), {2, 1, 0}},
                          {randomFloats(dims, 3), {0, 1, 2}, 2}},
                         dims),
                   4, scalars);
    expectLikeHost(
        fused({{randomFloats(dims), {1, 0, 2}}, x(row, 2), {randomFloats(dims, 3), {1, 0, 2}}}, dims), 4,
        scalars);
  }
}

/// A norm's gradient with what stands beside it: sums of rows and of columns, a residual, dropout.
Call overRows(std::vector<CallOperand> in, const Dims &dims, int64_t axis, int64_t parts) {
  Dims perRow = dims, columns{parts};
  std::fill(perRow.begin() + axis, perRow.end(), 1);
  columns.append(dims.begin() + axis, dims.end());
  Call call{
      "fused_rows",
      {},
      std::move(in),
      {{dims}, {dims}, {perRow, DType::F64, true}, {columns, DType::F64, true}, {columns, DType::F64, true}}};
  call.with("body",
            llvm::StringRef("t0: WIDE = WIDE(x0) * keep(0.25, 7, 1); t1: WIDE = rowsum(t0 * t0) / 64; t2: "
                            "WIDE = rowmax(t0); "
                            "t3: STORED = (t0 - t2) / sqrt(t1 + 1) * WIDE(x1); t4: WIDE = colsum(WIDE(t3)); "
                            "t5: WIDE = colsum(t0); "
                            "t6: WIDE = rowsum(WIDE(t3)) / 64; t7: STORED = WIDE(t3) + WIDE(x2) * t6"))
      .with("outputs", llvm::StringRef("t3,t7,t6,t4,t5"))
      .with("dims", dims)
      .with("axis", axis)
      .with("parts", parts);
  return call;
}

TEST(LargeKernels, overRows) {
  SHARDC_NEEDS_DEVICE();
  std::vector<double> scalars(kNumScalars);
  scalars[kSeed] = 42;
  scalars[kStep] = 3;
  scalars[kShardIndex] = 2;
  for (auto [rows, length] :
       {std::pair<int64_t, int64_t>{2000, 64}, {600, 1024}, {301, 1536}, {40, 1027}, {50, 5000}, {9, 8192}}) {
    SCOPED_TRACE(length);
    const Dims dims{rows, length};
    const double slack = 10 + std::sqrt(double(std::max(rows, length)));
    Call dense = overRows({x(dims), x({length}, 2), x(dims, 3)}, dims, 1, std::min<int64_t>(264, rows));
    dense.inPlace = {{0, 2}};
    expectLikeHost(dense, slack, scalars);
    expectLikeHost(overRows({x({rows, 1}), x(dims, 2), x({}, 3)}, dims, 1, 7), slack, scalars);
  }
  const Dims dims{6, 50, 16, 64};
  for (int64_t axis : {2, 3})
    expectLikeHost(
        overRows(
            {{randomFloats(dims), {0, 2, 1, 3}}, x({16, 1}, 2), {randomFloats(dims, 3), {3, 1, 2, 0}, 2}},
            dims, axis, 3),
        50, scalars);
}

TEST(LargeKernels, columnSums) {
  SHARDC_NEEDS_DEVICE();
  Call call{"column_sums", {}, {x({264, 1024}), x({7, 3, 5}, 2), x({1, 100}, 3)}, {{{1024}}, {{3, 5}}, {{100}}}};
  for (CallOperand &operand : call.in)
    operand.wide = true;
  expectLikeHost(call.with("dtypes", llvm::StringRef("STORED,STORED,STORED")), 20);
}

} // namespace
