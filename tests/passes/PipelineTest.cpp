// SPDX-License-Identifier: Apache-2.0
// Small graphs through the whole compiler: the result is a sound plan.
#include "passes/Pipeline.h"
#include "ir/graph/Builder.h"
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {

Value *addParameter(Graph &graph, llvm::StringRef name, llvm::ArrayRef<int64_t> dims) {
  Type type(DType::F32, dims);
  Value *value = graph.create(kParam, {}, {{"name", name.str()}}, {type}, nullptr, name)->result();
  Parameter p;
  p.name = name.str();
  p.type = type;
  p.value = value;
  graph.parameters.push_back(p);
  return value;
}

/// Two layers with shared weights, a bias, a norm, cross entropy over 5 classes.
std::unique_ptr<Graph> smallModel() {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph);
  Value *x = graph->create(kInput, {}, {{"name", std::string("x")}}, {Type(DType::F32, {4, 6})}, nullptr, "x")->result();
  Value *labels = graph->create(kInput, {}, {{"name", std::string("labels")}}, {Type(DType::I64, {4})}, nullptr, "labels")->result();
  Value *shared = addParameter(*graph, "layer.0.weight", {6, 6}), *bias = addParameter(*graph, "layer.0.bias", {6});
  Value *head = addParameter(*graph, "head.weight", {5, 6});
  addParameter(*graph, "unused.weight", {3, 3});
  Value *h = b.make(kRelu, {b.add(b.matmul(x, b.transpose(shared, {1, 0})), bias)});
  h = b.add(h, b.make(kGelu, {b.matmul(h, b.transpose(shared, {1, 0}))}));
  Value *logits = b.matmul(h, b.transpose(head, {1, 0}));
  Op *loss = b.make(kCrossEntropy, {logits, labels}, {{"ignore_index", int64_t(-100)}})->op();
  graph->addOutput("loss_sum", loss->result(0));
  graph->addOutput("loss_count", loss->result(1));
  graph->addOutput("correct", loss->result(2));
  graph->attrs.set("batch", int64_t(4));
  return graph;
}

Compilation compileOrFail(std::unique_ptr<Graph> graph, Optimizer optimizer = Optimizer::AdamW) {
  CompileOptions options;
  options.optimizer = optimizer;
  DebugOptions debug;
  debug.verifyEach = true;
  auto result = compile(std::move(graph), plan::Model(), options, debug);
  EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
  return result ? std::move(*result) : Compilation();
}

TEST(Pipeline, MakesASoundPlan) {
  for (Optimizer optimizer : {Optimizer::AdamW, Optimizer::Adam, Optimizer::Sgd}) {
    Compilation result = compileOrFail(smallModel(), optimizer);
    ASSERT_TRUE(result.plan);
    llvm::Error error = checkPlan(*result.plan);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
    EXPECT_EQ(result.plan->programs_size(), 3);
    EXPECT_EQ(result.plan->parameters_size(), 4);
  }
}

TEST(Pipeline, TheSameGraphGivesTheSamePlan) {
  std::string first = serializePlan(*compileOrFail(smallModel()).plan);
  EXPECT_EQ(first, serializePlan(*compileOrFail(smallModel()).plan));
}

TEST(Pipeline, EveryGradientIsBornInItsBucket) {
  Compilation result = compileOrFail(smallModel());
  for (const plan::Command &command : findProgram(*result.plan, "train")->commands())
    EXPECT_NE(command.kernel(), "copy");
}

TEST(Pipeline, TextOfEveryLevelParsesBackToItself) {
  for (llvm::StringRef stop : {"dce", "insert-gradients", "insert-optimizer", "materialize"}) {
    DebugOptions debug;
    debug.stopAfter = stop.str();
    auto result = compile(smallModel(), plan::Model(), {}, debug);
    ASSERT_TRUE(bool(result));
    std::string text = toString(*result->step);
    auto parsed = parseGraph(text, "text");
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError()) << "\n" << text;
    EXPECT_EQ(toString(**parsed), text);
    EXPECT_FALSE(bool(verify(**parsed)));
  }
}

} // namespace
