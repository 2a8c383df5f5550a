// SPDX-License-Identifier: Apache-2.0
// Copies, gathers, scatters, reductions and products against the references of the op table.
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"

namespace shardc::host {
namespace {

constexpr DType kF = DType::F64;

TEST(Copy, EqualsReference) {
  for (const Dims &dims :
       {Dims{}, Dims{1}, Dims{5}, Dims{3, 70}, Dims{2, 33, 65}, Dims{0, 2}, Dims{70000}})
    for (DType dtype : {kF, DType::I64, DType::Bool})
      expectReference({kCopy, {noise(dtype, dims, 1, 0, 2)}, {}});
}

TEST(Copy, Transposes) {
  // x[a, b, c] read as [c, a, b].
  Tensor x = noise(DType::F32, {3, 40, 70}, 1), y(DType::F32, {70, 3, 40});
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t b = 0; b < 40; ++b)
      for (int64_t c = 0; c < 70; ++c)
        y.mutableData<float>()[(c * 3 + a) * 40 + b] = x.data<float>()[(a * 40 + b) * 70 + c];
  KernelRun run("copy");
  run.in(x).out(DType::F32, {70, 3, 40});
  Array &in = run.binding().in[0];
  in.dims = {70, 3, 40};
  in.strides = {1, 2800, 70};
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  expectEqual(run.result(), y, "transposed");
}

TEST(Concat, EqualsReference) {
  for (int64_t axis : {0, 1, -1})
    for (DType dtype : {kF, DType::I32, DType::Bool}) {
      auto piece = [&](int64_t n, uint64_t seed) {
        Dims dims = {2, 3, 5};
        dims[axis < 0 ? 2 : axis] = n;
        return noise(dtype, dims, seed, 0, 2);
      };
      expectReference({kConcat, {piece(1, 1), piece(0, 2), piece(4, 3)}, {{"axis", axis}}});
    }
}

TEST(Pad, EqualsReference) {
  expectReference({kPad,
                   {noise(kF, {2, 3}, 1)},
                   {{"before", Ints{1, 0}}, {"after", Ints{0, 2}}, {"value", 0.5}}});
  expectReference({kPad,
                   {noise(DType::I64, {0, 3}, 1)},
                   {{"before", Ints{1, 0}}, {"after", Ints{1, 2}}, {"value", int64_t(-7)}}});
}

TEST(Gather, EqualsReference) {
  for (int64_t axis : {0, 1, -1}) {
    Tensor data = noise(kF, {3, 4, 70}, 1), few = noise(DType::I64, {2, 5}, 2, -3, 3);
    expectReference({kGather, {data, few}, {{"axis", axis}}});
    expectReference({kGather, {data, noise(DType::I32, {}, 2, 0, 3)}, {{"axis", axis}}});
    Dims dy = {3, 4, 70};
    int64_t at = axis < 0 ? 2 : axis, size = dy[at];
    dy[at] = 2;
    dy.insert(dy.begin() + at + 1, 5);
    expectReference({kGatherGrad, {noise(kF, dy, 4), few}, {{"axis", axis}, {"size", size}}});
  }
}

TEST(GatherElements, EqualsReference) {
  for (int64_t axis : {0, 1, 2})
    for (DType type : {DType::I64, DType::I32}) {
      Tensor data = noise(kF, {6, 5, 7}, 1), index = noise(type, {3, 5, 4}, 2, -5, 5);
      expectReference({kGatherElements, {data, index}, {{"axis", axis}}});
      expectReference({kGatherElementsGrad,
                       {noise(kF, {3, 5, 4}, 3), index},
                       {{"axis", axis}, {"size", int64_t(9)}}});
    }
}

TEST(GatherElements, ExpandedIndices) {
  Tensor data = noise(DType::F32, {4, 6, 9}, 1), index = noise(DType::I64, {1, 6, 8}, 2, 0, 9);
  Tensor dense(DType::I64, {4, 6, 8});
  for (int64_t i = 0; i < dense.numElements(); ++i)
    dense.mutableData<int64_t>()[i] = index.asInt(i % 48);
  KernelRun expanded("gather_elements"), plain("gather_elements");
  expanded.attr("axis", int64_t(2)).in(data).broadcast(index, {4, 6, 8}).out(DType::F32, {4, 6, 8});
  plain.attr("axis", int64_t(2)).in(data).in(dense).out(DType::F32, {4, 6, 8});
  ASSERT_EQ(messageOf(expanded.bindAndRun()), "");
  ASSERT_EQ(messageOf(plain.bindAndRun()), "");
  expectEqual(expanded.result(), plain.result(), "expanded");
}

TEST(Scatter, EqualsReference) {
  for (const char *reduction : {"none", "add", "mul", "max", "min"})
    expectReference(
        {kScatterElements,
         {noise(kF, {4, 5}, 1), noise(DType::I64, {3, 5}, 2, -4, 4), noise(kF, {3, 5}, 3)},
         {{"axis", int64_t(0)}, {"reduction", std::string(reduction)}}});
  for (const char *reduction : {"none", "add"})
    expectReference(
        {kScatterNd,
         {noise(kF, {4, 3, 5}, 1), noise(DType::I64, {6, 2}, 2, 0, 3), noise(kF, {6, 5}, 3)},
         {{"reduction", std::string(reduction)}}});
  expectReference({kGatherNd,
                   {noise(kF, {2, 3, 5}, 1), noise(DType::I64, {2, 4, 1}, 2, 0, 3)},
                   {{"batch_dims", int64_t(1)}}});
  for (int64_t flags : {0, 1, 2, 3})
    expectReference({kCumSum,
                     {noise(kF, {3, 6, 2}, 1)},
                     {{"axis", int64_t(1)}, {"exclusive", flags & 1}, {"reverse", flags >> 1}}});
}

TEST(Indices, OutOfRangeIsNamed) {
  Tensor data = noise(DType::F32, {3, 4}, 1);
  auto expectMessage = [](KernelRun &run, const char *wanted) {
    EXPECT_EQ(messageOf(run.bindAndRun()), wanted);
  };
  KernelRun gather("gather");
  gather.attr("axis", int64_t(0)).in(data).in(Tensor::ofInts({0, -4})).out(DType::F32, {2, 4});
  expectMessage(gather, "here: index out of range: got -4, wanted -3 to 2");
  KernelRun elements("gather_elements");
  elements.attr("axis", int64_t(1)).in(data).in(Tensor::ofInts({0, 4}).reshaped({1, 2}));
  elements.out(DType::F32, {1, 2});
  expectMessage(elements, "here: index out of range: got 4, wanted -4 to 3");
  KernelRun nd("gather_nd");
  nd.in(data).in(Tensor::ofInts({0, 9}).reshaped({1, 2})).out(DType::F32, {1});
  expectMessage(nd, "here: index out of range: got 9, wanted -4 to 3");
  KernelRun scatter("scatter_elements");
  scatter.attr("axis", int64_t(0)).attr("reduction", std::string("none")).in(data);
  scatter.in(Tensor::ofInts({3}).reshaped({1, 1})).in(noise(DType::F32, {1, 1}, 2)).outOver(0);
  expectMessage(scatter, "here: index out of range: got 3, wanted -3 to 2");
}

TEST(Reduce, EqualsReference) {
  const OpDef *ops[] = {&kReduceSum, &kReduceMax, &kReduceMin, &kReduceProd};
  struct Case {
    Dims dims;
    std::vector<Ints> axes;
  };
  const Case cases[] = {{{}, {{}}},
                        {{5}, {{0}, {}}},
                        {{4099}, {{-1}}},
                        {{3, 130}, {{0}, {1}, {0, 1}, {}}},
                        {{2, 5, 70}, {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}},
                        {{3, 1, 4, 2}, {{1}, {0, 3}, {2}}},
                        {{200, 3}, {{0}}},
                        {{2, 0, 3}, {{0}, {1}}}};
  for (const OpDef *op : ops)
    for (const Case &c : cases)
      for (const Ints &axes : c.axes)
        for (int64_t keep : {0, 1}) {
          bool extreme = op == &kReduceMax || op == &kReduceMin;
          if (extreme && numElements(c.dims) == 0 && axes == Ints{1})
            continue;
          Attrs attrs = {{"axes", axes}, {"keep_dims", keep}};
          expectReference({*op, {noise(kF, c.dims, 1, -1.05, 1.05)}, attrs});
          expectReference({*op, {noise(DType::I64, c.dims, 2, -9, 9)}, attrs});
        }
}

TEST(Reduce, LongSumsOfFloatsStayExact) {
  // 2^20 times 0.1: adding one by one in f32 would be off by some percent.
  KernelRun run("reduce_sum");
  run.attr("axes", Ints{0}).in(Tensor::splat(DType::F32, {1 << 20}, 0.1)).out(DType::F32, {});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  EXPECT_NEAR(run.result().asDouble(0), double(0.1f) * (1 << 20), 0.05);
}

TEST(MatMul, EqualsReference) {
  struct Case {
    Dims a, b;
  };
  const Case cases[] = {
      {{1, 1}, {1, 1}},           {{3, 5}, {5, 7}},       {{37, 65}, {65, 19}},
      {{200, 30}, {30, 600}},     {{2, 3, 4, 5}, {5, 6}}, {{2, 3, 4, 5}, {2, 1, 5, 6}},
      {{4, 5}, {3, 5, 2}},        {{0, 5}, {5, 3}},       {{4, 0}, {0, 3}},
      {{6, 40, 64}, {6, 64, 40}}, {{1, 7}, {7, 1}},       {{300, 2}, {2, 3}}};
  for (const Case &c : cases)
    for (int flags = 0; flags < 4; ++flags) {
      Dims a = c.a, b = c.b;
      if (flags & 1)
        std::swap(a[a.size() - 1], a[a.size() - 2]);
      if (flags & 2)
        std::swap(b[b.size() - 1], b[b.size() - 2]);
      Attrs attrs = {{"transpose_a", int64_t(flags & 1)}, {"transpose_b", int64_t(flags >> 1)}};
      expectReference({kMatMul, {noise(kF, a, 1), noise(kF, b, 2)}, attrs, 2e-5});
    }
}

TEST(MatMul, Accumulates) {
  expectReference(
      {kMatMul, {noise(kF, {9, 33}, 1), noise(kF, {33, 20}, 2), noise(kF, {9, 20}, 3)}, {}, 2e-5});
  expectReference(
      {kMatMul, {noise(kF, {3, 0}, 1), noise(kF, {0, 2}, 2), noise(kF, {3, 2}, 3)}, {}});
}

TEST(MatMul, AnyStrides) {
  // Neither stride of a is 1, b is broadcast along its rows.
  Tensor a = noise(DType::F32, {17, 9}, 1), b = noise(DType::F32, {1, 12}, 2);
  KernelRun run("matmul");
  run.in(a, Lay::LastStrided).broadcast(b, {9, 12}).out(DType::F32, {17, 12});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  Tensor wanted(DType::F32, {17, 12});
  for (int64_t i = 0; i < 17; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 9; ++k)
        sum += a.asDouble(i * 9 + k) * b.asDouble(j);
      wanted.mutableData<float>()[i * 12 + j] = float(sum);
    }
  expectNear(run.result(), wanted, 1e-5, "product");
}

} // namespace
} // namespace shardc::host
