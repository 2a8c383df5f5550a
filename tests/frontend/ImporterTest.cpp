// SPDX-License-Identifier: Apache-2.0
// What the importer makes of nodes, branches, parameters and names.
#include "ir/graph/Fold.h"
#include "tests/frontend/ImportHelpers.h"

namespace shardc::test {
namespace {

ImportOptions plain(std::vector<std::pair<std::string, int64_t>> dims = {}) {
  ImportOptions o;
  o.loss = "none";
  o.dims = std::move(dims);
  return o;
}

/// x [batch, 3] through a linear layer of weight [2, 3], as TorchScript writes it; y is the mean of
/// squares.
TestModel linear() {
  TestModel m;
  m.floats("x", {"batch", "3"});
  m.weight("m.block.0.dense.weight", {2, 3}, 1);
  m.weight("m.block.0.dense.bias", {2}, 2);
  m.node("Transpose", {"m.block.0.dense.weight"}, {"wt"}, "/m/block.0/dense/Transpose");
  m.node("MatMul", {"x", "wt"}, {"xw"}, "/m/block.0/dense/MatMul");
  m.node("Add", {"m.block.0.dense.bias", "xw"}, {"logits"}, "/m/block.0/dense/Add");
  m.node("Mul", {"logits", "logits"}, {"square"}, "/m/Mul");
  m.node("ReduceMean", {"square"}, {"loss"}, "/m/ReduceMean");
  m.output("loss");
  m.output("logits");
  return m;
}

TEST(Importer, ShapeArithmeticVanishes) {
  TestModel m;
  m.floats("x", {"batch", "6"});
  m.integers("zero", {1}, {0});
  m.integers("heads", {2}, {-1, 3});
  m.node("Shape", {"x"}, {"shape"}, "n/Shape");
  m.node("Gather", {"shape", "zero"}, {"batch"}, "n/Gather");
  setInt(m.node("Concat", {"batch", "heads"}, {"wanted"}, "n/Concat"), "axis", 0);
  m.node("Reshape", {"x", "wanted"}, {"y"}, "n/Reshape");
  m.output("y");
  auto graph = m.graphOf(plain({{"batch", 5}}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->numOps(), 2u);
  EXPECT_EQ(graph->output("y")->type(), Type(DType::F32, {5, 2, 3}));
  EXPECT_EQ(graph->output("y")->op()->place, "n/Reshape");
}

TEST(Importer, KeepsThePaddingRowOfAnEmbedding) {
  auto padding = [](const std::string &argument) {
    TestModel m;
    m.ids("ids", {"4"});
    m.weight("m.table.weight", {7, 3}, 1);
    onnx::NodeProto *node = m.node("Gather", {"m.table.weight", "ids"}, {"y"}, "n/Gather");
    addMetadata(
        node->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
        "%e : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = (%p_w, %ids" +
            argument + "), kwargs = {})");
    m.output("y");
    auto graph = m.graphOf(plain());
    return graph ? graph->output("y")->op()->attrs.getInt("padding", -1) : -2;
  };
  EXPECT_EQ(padding(", 3"), 3);
  EXPECT_EQ(padding(", -1, True"), -1);
  EXPECT_EQ(padding(""), -1);
}

TEST(Importer, SaysThatAttentionLostItsDropout) {
  auto notes = [](const std::string &ratio) {
    TestModel m;
    m.floats("x", {"4", "3"});
    onnx::NodeProto *node = m.node("Softmax", {"x"}, {"y"}, "n/Softmax");
    addMetadata(
        node->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
        "%a : [num_users=1] = call_function[target=torch.ops.aten.scaled_dot_product_attention.default](args "
        "= (%q, %k, %v, None" +
            ratio + "), kwargs = {scale: 1.0})");
    m.output("y");
    m.graphOf(plain());
    return m.notes;
  };
  EXPECT_EQ(notes(", 0.1"),
            std::vector<std::string>{
                "1 attention has no dropout, though it had in PyTorch: 'n/Softmax' (the exporter lost the "
                "dropout of attention: export with attn_implementation=\"eager\")"});
  EXPECT_TRUE(notes(", 0.0").empty());
  EXPECT_TRUE(notes("").empty());
}

TEST(Importer, ListsAllUnsupportedNodesTogether) {
  TestModel m;
  m.floats("x", {"4"});
  m.node("NonZero", {"x"}, {"a"}, "n/first");
  m.node("Relu", {"a"}, {"b"}, "n/between");
  m.node("Unique", {"b"}, {"c"}, "n/second");
  m.node("Gelu", {"x"}, {"d"}, "n/third")->set_domain("com.microsoft");
  m.node("RandomUniformLike", {"x"}, {"e"}, "n/drop_path");
  m.node("Concat", {"c", "d", "e"}, {"y"}, "n/last");
  m.output("y");
  std::string error = m.errorOf(plain());
  EXPECT_TRUE(llvm::StringRef(error).starts_with("m.onnx: nodes that are not supported: got 4\n")) << error;
  EXPECT_TRUE(llvm::StringRef(error).contains(
      "RandomUniformLike (opset 17) at 'n/drop_path': of random ops only Dropout is built"))
      << error;
  EXPECT_TRUE(llvm::StringRef(error).contains(
      "NonZero (opset 17) at 'n/first': the size of its result depends on data"));
  EXPECT_TRUE(llvm::StringRef(error).contains("Unique (opset 17) at 'n/second': there is no rule for it"));
  EXPECT_TRUE(llvm::StringRef(error).contains("Gelu (opset 17) at 'n/third': domain 'com.microsoft'"));
}

TEST(Importer, MistakesNameTheNode) {
  TestModel m;
  m.floats("x", {"4", "3"});
  m.floats("z", {"4", "3"});
  m.node("MatMul", {"x", "z"}, {"y"}, "l0/MatMul");
  m.output("y");
  EXPECT_TRUE(llvm::StringRef(m.errorOf(plain())).starts_with("l0/MatMul/matmul: ")) << m.errorOf(plain());

  TestModel r;
  r.floats("x", {"4", "3"});
  r.integers("shape", {2}, {5, -1});
  r.node("Reshape", {"x", "shape"}, {"y"}, "l0/Reshape");
  r.output("y");
  EXPECT_EQ(r.errorOf(plain()),
            "l0/Reshape: shape: -1 has no solution: got 12 elements for 5x1, wanted a multiple of 5");
}

/// If whose branches read x and a value of the graph around.
TestModel branches() {
  TestModel m;
  m.floats("x", {"batch", "2"});
  m.node("Relu", {"x"}, {"outer"}, "n/Relu");
  onnx::NodeProto *node = m.node("If", {"condition"}, {"y"}, "n/If");
  for (const char *name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto *attr = node->add_attribute();
    attr->set_name(name);
    attr->set_type(onnx::AttributeProto::GRAPH);
    attr->mutable_g()->set_name(name);
    bool then = llvm::StringRef(name) == "then_branch";
    addNode(attr->mutable_g()->mutable_node(), then ? "Neg" : "Exp", {"outer"}, {then ? "t" : "e"},
            then ? "b/t" : "b/e");
    attr->mutable_g()->add_output()->set_name(then ? "t" : "e");
  }
  m.output("y");
  return m;
}

TEST(Importer, KeepsTheBranchThatTheShapesChoose) {
  for (int64_t batch : {3, 4}) {
    TestModel m = branches();
    m.integers("three", {1}, {3});
    m.integers("first", {1}, {0});
    auto *nodes = m.graph()->mutable_node();
    addNode(nodes, "Shape", {"x"}, {"shape"});
    addNode(nodes, "Gather", {"shape", "first"}, {"n"});
    addNode(nodes, "Equal", {"n", "three"}, {"condition"});
    auto graph = m.graphOf(plain({{"batch", batch}}));
    ASSERT_TRUE(graph);
    EXPECT_EQ(countOps(*graph, kNeg), batch == 3);
    EXPECT_EQ(countOps(*graph, kExp), batch != 3);
    EXPECT_EQ(m.notes, std::vector<std::string>{"1 If node has a condition that the shapes decide"});
  }
}

TEST(Importer, RefusesBranchesThatDataChooses) {
  TestModel m = branches();
  m.typedInput("condition", onnx::TensorProto::BOOL, {"1"});
  EXPECT_TRUE(llvm::StringRef(m.errorOf(plain({{"batch", 2}})))
                  .contains("If (opset 17) at 'n/If': the condition depends on data"));
  TestModel merged = branches();
  merged.graph()->mutable_node(1)->set_input(0, "use_cache_branch");
  merged.typedInput("use_cache_branch", onnx::TensorProto::BOOL, {"1"});
  EXPECT_TRUE(llvm::StringRef(merged.errorOf(plain({{"batch", 2}}))).contains("decoder_model_merged"));
}

TEST(Importer, ParametersKeepPyTorchsNamesAndTellTheirPlace) {
  TestModel m = linear();
  ImportOptions o;
  o.dims = {{"batch", 4}};
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->parameters.size(), 2u);
  EXPECT_EQ(graph->parameters[0].name, "block.0.dense.weight");
  EXPECT_EQ(graph->parameters[0].type, Type(DType::F32, {2, 3}));
  EXPECT_EQ(graph->parameters[0].source.kind, ValueSource::File);
  for (const Parameter &p : graph->parameters) {
    EXPECT_TRUE(p.trainable);
    EXPECT_EQ(p.value->op()->layer, "block.0");
  }
  for (const Op &op : graph->ops())
    if (op.is(kMatMul) || op.is(kTranspose)) {
      EXPECT_EQ(op.layer, "block.0") << op.place;
    }
  EXPECT_EQ(graph->attrs.getInt("opset"), 17);
  EXPECT_EQ(graph->attrs.getString("producer"), "test");
}

TEST(Importer, FreezeTakesGlobs) {
  TestModel m = linear();
  ImportOptions o;
  o.dims = {{"batch", 4}};
  o.freeze = {"*.bias"};
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  for (const Parameter &p : graph->parameters)
    EXPECT_EQ(p.trainable, llvm::StringRef(p.name).ends_with("weight"));
  o.freeze = {"nothing*"};
  EXPECT_EQ(m.errorOf(o), "--freeze: got 'nothing*', wanted a glob that matches a parameter's name");
  o.freeze = {"*"};
  EXPECT_EQ(m.errorOf(o), "nothing to train: got 2 parameters, of which none is free and reaches the loss");
}

TEST(Importer, WhatPassesThroughIntegersIsNotTrained) {
  TestModel m = linear();
  m.weight("m.table", {2, 3}, 5);
  onnx::NodeProto *round = m.node("Cast", {"m.table"}, {"rounded"}, "n/Cast");
  setInt(round, "to", onnx::TensorProto::INT64);
  setInt(m.node("Cast", {"rounded"}, {"back"}, "n/back"), "to", onnx::TensorProto::FLOAT);
  m.node("ReduceMean", {"back"}, {"extra"}, "n/mean");
  m.node("Add", {"loss", "extra"}, {"total"}, "n/total");
  m.output("total");
  ImportOptions o;
  o.dims = {{"batch", 4}};
  o.loss = "total";
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  for (const Parameter &p : graph->parameters)
    EXPECT_EQ(p.trainable, p.name != "table" && p.name != "m.table") << p.name;
}

TEST(Importer, InferenceDropoutVanishesAndIsTold) {
  TestModel m;
  m.floats("x", {"batch", "2"});
  m.weight("ratio", {}, llvm::ArrayRef<float>(0.25f));
  onnx::TensorProto *yes = m.graph()->add_initializer();
  yes->set_name("yes");
  yes->set_data_type(onnx::TensorProto::BOOL);
  yes->set_raw_data("\1");
  m.node("Dropout", {"x", "ratio", "yes"}, {"a", "unused"}, "n/active");
  m.node("Dropout", {"a", "ratio"}, {"b"}, "n/idle");
  m.node("Relu", {"b"}, {"y"}, "n/Relu");
  m.output("y");
  auto graph = m.graphOf(plain({{"batch", 2}}));
  ASSERT_TRUE(graph);
  ASSERT_EQ(countOps(*graph, kDropout), 1);
  const Op *dropout = graph->output("y")->op()->operand(0)->op();
  EXPECT_EQ(dropout->attrs.getFloat("p"), 0.25);
  EXPECT_EQ(dropout->attrs.getInt("batch_major"), 1);
  ASSERT_EQ(m.notes.size(), 1u);
  EXPECT_TRUE(
      llvm::StringRef(m.notes[0]).starts_with("1 Dropout node does nothing, though others are active"));
}

TEST(Importer, IdsAreLimitedByTheTablesThatTheyIndex) {
  TestModel m;
  m.ids("ids", {"batch", "seq"});
  m.weight("m.table.weight", {7, 2}, 1);
  m.node("Gather", {"m.table.weight", "ids"}, {"y"}, "n/Gather");
  m.output("y");
  auto graph = m.graphOf(plain({{"batch", 2}, {"seq", 3}}));
  ASSERT_TRUE(graph);
  const Attrs &attrs = findInput(*graph, "ids")->attrs;
  EXPECT_EQ(attrs.getInt("low"), 0);
  EXPECT_EQ(attrs.getInt("high"), 7);
  EXPECT_FALSE(attrs.has("ignore"));
}

/// What a dim of the model decides the length of is refused where it is beyond all bounds, before anything is
/// made.
TEST(Importer, RangesHaveABound) {
  auto errorOf = [](int64_t count) {
    TestModel m;
    m.floats("x", {"2"});
    m.integers("zero", {}, {0});
    m.integers("one", {}, {1});
    m.integers("count", {}, {count});
    m.node("Range", {"zero", "count", "one"}, {"r"}, "n/Range");
    m.node("ReduceMax", {"r"}, {"most"}, "n/Max");
    m.node("Cast", {"most"}, {"f"}, "n/Cast");
    setInt(m.graph()->mutable_node(2), "to", onnx::TensorProto::FLOAT);
    m.node("Add", {"x", "f"}, {"y"}, "n/Add");
    m.output("y");
    return m.errorOf(plain());
  };
  EXPECT_EQ(errorOf(5), "");
  for (int64_t count : {int64_t(8388609), int64_t(1) << 40, INT64_MAX})
    EXPECT_EQ(errorOf(count), "n/Range: range has too many elements: got " + std::to_string(double(count)) +
                                  ", wanted at most 8388608");
}

TEST(Importer, OneHotsHaveABound) {
  TestModel m;
  m.ids("ids", {"2"});
  m.integers("depth", {}, {int64_t(1) << 39});
  m.integers("values", {2}, {0, 1});
  m.node("OneHot", {"ids", "depth", "values"}, {"y"}, "n/OneHot");
  m.output("y");
  EXPECT_EQ(m.errorOf(plain()),
            "n/OneHot: depth: got 549755813888.000000, wanted a number from 1 to 8388608");
}

/// A large triangle is computed where it is needed: no constant of the size of the scores.
TEST(Importer, TrianglesAreConstantsOnlyWhereSmall) {
  const int64_t rows = 2100, columns = 2050; // bytes: just above what folds
  for (auto [upper, k] : {std::pair(0, 0), {0, -7}, {1, 0}, {1, 3}}) {
    TestModel m;
    m.typedInput("x", onnx::TensorProto::INT64, {"2100", "2050"});
    m.integers("k", {}, {k});
    m.node("Trilu", {"x", "k"}, {"y"}, "n/Trilu");
    setInt(m.graph()->mutable_node(0), "upper", upper);
    m.output("y");
    auto graph = m.graphOf(plain());
    ASSERT_TRUE(graph);
    for (const Op &op : graph->ops())
      EXPECT_TRUE(!op.is(kConstant) || op.result()->type().numBytes() < 100000)
          << toString(op.result()->type());
    auto values = evaluateGraph(*graph, {{"x", Tensor::splat(DType::I64, {rows, columns}, 1)}});
    ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError());
    const Tensor &y = values->find(graph->output("y"))->second;
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        wrong += y.data<int64_t>()[i * columns + j] != (upper ? j >= i + k : j <= i + k);
    EXPECT_EQ(wrong, 0) << "upper " << upper << ", k " << k;
  }
}

TEST(Importer, OneFileGivesOneGraph) {
  ImportOptions o;
  o.dims = {{"batch", 4}};
  TestModel a = linear(), b = linear();
  auto first = a.graphOf(o), second = b.graphOf(o);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(toString(*first), toString(*second));
}

TEST(Importer, KnownInputsFold) {
  TestModel m;
  m.floats("x", {"2"});
  m.floats("y", {"2"});
  m.node("Add", {"x", "y"}, {"z"}, "n");
  m.output("z");
  ImportOptions o = plain();
  o.constants["x"] = tensorOf({2}, {1, 2});
  o.constants["y"] = tensorOf({2}, {10, 20});
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  const Tensor *sum = constantOf(graph->output("z"));
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, tensorOf({2}, {11, 22}));
}

} // namespace
} // namespace shardc::test
