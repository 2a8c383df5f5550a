// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: what binds them, and every mistake in doing so.
#include "frontend/BindDims.h"
#include "tests/frontend/ImportHelpers.h"

namespace shardc::test {
namespace {

/// y = x + mask over [batch, "past + new"], mask over [batch, 4].
TestModel twoInputs() {
  TestModel m;
  m.floats("x", {"batch", "past + new"});
  m.floats("mask", {"batch", "?"});
  m.node("ReduceSum", {"x"}, {"a"}, "n/a");
  m.node("ReduceSum", {"mask"}, {"b"}, "n/b");
  m.node("Add", {"a", "b"}, {"y"}, "n/y");
  m.output("y");
  return m;
}

ImportOptions options(std::vector<std::pair<std::string, int64_t>> dims = {},
                      std::vector<std::pair<std::string, Dims>> shapes = {}) {
  ImportOptions o;
  o.loss = "none";
  o.dims = std::move(dims);
  o.inputShapes = std::move(shapes);
  return o;
}

TEST(BindDims, NamesMayHoldBlanksAndSigns) {
  TestModel m = twoInputs();
  auto graph = m.graphOf(options({{"past + new", 5}, {"batch", 3}}, {{"mask", {3, 4}}}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(findInput(*graph, "x")->result()->type(), Type(DType::F32, {3, 5}));
  EXPECT_EQ(findInput(*graph, "mask")->result()->type(), Type(DType::F32, {3, 4}));
  EXPECT_TRUE(findInput(*graph, "mask")->result()->batchMajor());
}

TEST(BindDims, BatchIsDimZeroOfTheFirstInput) {
  TestModel m = twoInputs();
  ImportOptions o = options({{"past + new", 5}}, {{"mask", {7, 4}}});
  o.batch = 7;
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("batch"), 7);
  o.batch = 8;
  EXPECT_EQ(m.errorOf(o), "--input-shape mask: dimension 'batch' is bound twice: got 7, and 8 from "
                          "--batch, wanted one value");
}

TEST(BindDims, AnotherBatchReplacesWhatAnyFlagSays) {
  TestModel m = twoInputs();
  ImportOptions byName = options({{"past + new", 5}, {"batch", 3}}, {{"mask", {3, 4}}});
  ImportOptions byFlag = options({{"past + new", 5}}, {{"mask", {7, 4}}});
  byFlag.batch = 7;
  ImportOptions byShape = options({}, {{"x", {2, 5}}, {"mask", {2, 4}}});
  ImportOptions byNone = options({{"past + new", 5}}, {{"mask", {1, 4}}});
  for (ImportOptions *o : {&byName, &byFlag, &byShape, &byNone}) {
    o->batchInstead = 11;
    auto graph = m.graphOf(*o);
    ASSERT_TRUE(graph);
    EXPECT_EQ(graph->attrs.getInt("batch"), 11);
    EXPECT_EQ(findInput(*graph, "x")->result()->type(), Type(DType::F32, {11, 5}));
    EXPECT_EQ(findInput(*graph, "mask")->result()->type(), Type(DType::F32, {11, 4}));
  }
}

/// y = x + mask, dim 0 of each with a name of its own, as exporters make them up.
TestModel twoNames() {
  TestModel m;
  m.floats("x", {"x_dynamic_axes_1", "length"});
  m.floats("mask", {"mask_dynamic_axes_1", "length"});
  m.floats("table", {"length", "length"});
  m.node("Add", {"x", "mask"}, {"a"}, "n/a");
  m.node("MatMul", {"a", "table"}, {"y"}, "n/y");
  m.output("y");
  return m;
}

TEST(BindDims, AnotherBatchReplacesAllNamesOfRowsThatHaveItsSize) {
  TestModel m = twoNames();
  ImportOptions byNames = options({{"x_dynamic_axes_1", 3}, {"mask_dynamic_axes_1", 3}, {"length", 3}});
  ImportOptions byShapes = options({{"length", 5}}, {{"x", {3, 5}}, {"mask", {3, 5}}});
  for (ImportOptions *o : {&byNames, &byShapes}) {
    o->batchInstead = 11;
    auto graph = m.graphOf(*o);
    ASSERT_TRUE(graph);
    int64_t length = o == &byNames ? 3 : 5; // is no name of rows: the table has it as dim 1 too
    EXPECT_EQ(findInput(*graph, "x")->result()->type(), Type(DType::F32, {11, length}));
    EXPECT_EQ(findInput(*graph, "mask")->result()->type(), Type(DType::F32, {11, length}));
    EXPECT_TRUE(findInput(*graph, "mask")->result()->batchMajor());
    EXPECT_EQ(findInput(*graph, "table")->result()->type(), Type(DType::F32, {length, length}));
    EXPECT_FALSE(findInput(*graph, "table")->result()->batchMajor());
  }
  ImportOptions other = options({{"x_dynamic_axes_1", 3}, {"mask_dynamic_axes_1", 1}, {"length", 5}});
  other.batchInstead = 11;
  auto graph = m.graphOf(other);
  ASSERT_TRUE(graph);
  EXPECT_EQ(findInput(*graph, "mask")->result()->type(), Type(DType::F32, {1, 5}));
  EXPECT_FALSE(findInput(*graph, "mask")->result()->batchMajor());
}

TEST(BindDims, FlagsOfAnotherBatch) {
  auto flags = [](TestModel m, ImportOptions o, std::optional<int64_t> batch = std::nullopt) {
    o.batch = batch;
    return batchFlags(*llvm::cantFail(m.read()), o, 7);
  };
  EXPECT_EQ(flags(twoInputs(), options({{"past + new", 5}, {"batch", 3}}, {{"mask", {3, 4}}})),
            "--dim batch=7 --input-shape mask=7x4");
  EXPECT_EQ(flags(twoInputs(), options({{"past + new", 5}}), 3), "--batch 7");
  EXPECT_EQ(flags(twoInputs(), options({{"past + new", 5}})), "--batch 7");
  EXPECT_EQ(flags(twoInputs(), options({}, {{"x", {3, 5}}, {"mask", {3, 4}}})), "--input-shape x=7x5,mask=7x4");
  EXPECT_EQ(flags(twoNames(), options({{"x_dynamic_axes_1", 3}, {"mask_dynamic_axes_1", 3}, {"length", 3}})),
            "--dim x_dynamic_axes_1=7,mask_dynamic_axes_1=7");
}

TEST(BindDims, AllUnboundOnesAreListed) {
  TestModel m = twoInputs();
  EXPECT_EQ(m.errorOf(options()),
            "m.onnx: dimensions are not bound: got no value for 'batch' (x dim 0, mask dim 0), "
            "'past + new' (x dim 1), mask dim 1 (no name)");
}

TEST(BindDims, InputsThatNothingReadsNeedNoShape) {
  TestModel m;
  m.floats("x", {"batch"});
  m.floats("idle", {"elsewhere"});
  m.node("Relu", {"x"}, {"y"}, "n");
  m.output("y");
  auto graph = m.graphOf(options({{"batch", 2}}));
  ASSERT_TRUE(graph);
  EXPECT_FALSE(findInput(*graph, "idle"));
}

TEST(BindDims, Mistakes) {
  TestModel m = twoInputs();
  EXPECT_EQ(m.errorOf(options({{"src", 5}})),
            "--dim: unknown dimension: got 'src', wanted one of 'batch', 'past + new'");
  EXPECT_EQ(m.errorOf(options({{"batch", 0}})), "--dim batch: got 0, wanted a number from 1 on");
  EXPECT_EQ(m.errorOf(options({{"batch", 2}, {"batch", 3}})),
            "--dim batch: dimension 'batch' is bound twice: got 3, and 2 from --dim batch, wanted "
            "one value");
  EXPECT_EQ(m.errorOf(options({}, {{"y", {2}}})),
            "--input-shape: unknown input: got 'y', wanted one of 'x', 'mask'");
  EXPECT_EQ(m.errorOf(options({}, {{"x", {2}}})),
            "--input-shape x: number of dims: got 1 (2), wanted 2");
  EXPECT_EQ(m.errorOf(options({{"batch", int64_t(1) << 40}, {"past + new", int64_t(1) << 40}},
                              {{"mask", {int64_t(1) << 40, 1}}})),
            "m.onnx: input 'x' is too large: got 1099511627776x1099511627776, wanted at most 2^63 - 1 elements");
}

TEST(BindDims, FixedDimsStay) {
  TestModel m;
  m.floats("x", {"4", "3"});
  m.node("Relu", {"x"}, {"y"}, "n");
  m.output("y");
  EXPECT_EQ(m.errorOf(options({}, {{"x", {4, 2}}})),
            "--input-shape x: dim 1: got 2, wanted 3, which the model fixes");
  ImportOptions o = options();
  o.batch = 8;
  EXPECT_EQ(m.errorOf(o), "--batch: got 8, wanted 4: dim 0 of input 'x' is fixed in the model");
  auto graph = m.graphOf(options());
  ASSERT_TRUE(graph);
  EXPECT_TRUE(findInput(*graph, "x")->result()->batchMajor());
}

} // namespace
} // namespace shardc::test
