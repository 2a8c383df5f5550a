// SPDX-License-Identifier: Apache-2.0
// The loss as (sum, count), found in the model or added to it, against sums worked out here.
#include "tests/frontend/ImportHelpers.h"
#include <cmath>

namespace shardc::test {
namespace {

constexpr float kLogits[] = {1, 2, 0.5f, -1, 0, 3, 2, 2, 2, 0.25f, -0.5f, 1};

/// -log softmax(row)[label] of kLogits as rows of 3.
double rowLoss(int row, int64_t label) {
  double sum = 0;
  for (int i = 0; i < 3; ++i)
    sum += std::exp(double(kLogits[row * 3 + i]));
  return std::log(sum) - kLogits[row * 3 + label];
}

/// x [batch, 3] times a weight that is the identity: the logits are the inputs.
TestModel logitsModel() {
  TestModel m;
  m.floats("x", {"batch", "3"});
  m.weight("m.head.weight", {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  m.node("MatMul", {"x", "m.head.weight"}, {"logits"}, "n/MatMul");
  return m;
}

llvm::StringMap<Tensor> given(llvm::ArrayRef<int64_t> labels) {
  llvm::StringMap<Tensor> values;
  values["x"] = tensorOf({4, 3}, kLogits);
  values["labels"] = idsOf({4}, labels);
  values["head.weight"] = values["m.head.weight"] = tensorOf({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  return values;
}

ImportOptions batch4() {
  ImportOptions o;
  o.dims = {{"batch", 4}};
  return o;
}

TEST(Loss, MeanInTheModelBecomesSumAndCount) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch"});
  setInt(m.node("SoftmaxCrossEntropyLoss", {"logits", "labels"}, {"loss"}, "n/loss"),
         "ignore_index", -100);
  m.output("loss");
  m.output("logits");
  auto graph = m.graphOf(batch4());
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("loss_divisible"), 1);
  EXPECT_TRUE(graph->output("correct"));
  EXPECT_EQ(countOps(*graph, kDiv), 0); // the division of the mean is gone
  double want = (rowLoss(0, 1) + rowLoss(2, 0) + rowLoss(3, 2)) / 3;
  EXPECT_NEAR(lossOf(*graph, given({1, -100, 0, 2})), want, 1e-6);
  const Attrs &limits = findInput(*graph, "labels")->attrs;
  EXPECT_EQ(limits.getInt("low"), 0);
  EXPECT_EQ(limits.getInt("high"), 3);
  EXPECT_EQ(limits.getInt("ignore"), -100);
}

TEST(Loss, NegativeLogLikelihoodOfLogSoftmaxIsCrossEntropy) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch"});
  setInt(m.node("LogSoftmax", {"logits"}, {"logs"}, "n/logs"), "axis", 1);
  m.node("NegativeLogLikelihoodLoss", {"logs", "labels"}, {"loss"}, "n/loss");
  m.output("loss");
  auto graph = m.graphOf(batch4());
  ASSERT_TRUE(graph);
  EXPECT_EQ(countOps(*graph, kCrossEntropy), 1);
  EXPECT_EQ(countOps(*graph, kLogSoftmax), 0);
  EXPECT_NEAR(lossOf(*graph, given({1, 1, 0, 2})),
              (rowLoss(0, 1) + rowLoss(1, 1) + rowLoss(2, 0) + rowLoss(3, 2)) / 4, 1e-6);
}

/// labels >= 0 -> NonZero -> GatherElements -> loss, as DeBERTa's classifier is exported.
TEST(Loss, SelectedRowsBecomeAMask) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch"});
  m.integers("zero", {}, {0});
  m.integers("rows", {2}, {-1, 3});
  m.integers("flat", {1}, {-1});
  m.node("GreaterOrEqual", {"labels", "zero"}, {"keep"}, "n/keep");
  m.node("NonZero", {"keep"}, {"places"}, "n/NonZero");
  m.node("Transpose", {"places"}, {"column"}, "n/Transpose");
  m.node("Shape", {"column"}, {"shape"}, "n/Shape");
  m.node("Expand", {"column", "rows"}, {"index"}, "n/Expand");
  setInt(m.node("GatherElements", {"logits", "index"}, {"chosen"}, "n/chosen"), "axis", 0);
  m.node("Reshape", {"column", "flat"}, {"line"}, "n/line");
  setInt(m.node("GatherElements", {"labels", "line"}, {"chosenLabels"}, "n/labels"), "axis", 0);
  m.node("SoftmaxCrossEntropyLoss", {"chosen", "chosenLabels"}, {"loss"}, "n/loss");
  m.output("loss");
  auto graph = m.graphOf(batch4());
  ASSERT_TRUE(graph);
  EXPECT_NEAR(lossOf(*graph, given({1, -1, -7, 2})), (rowLoss(0, 1) + rowLoss(3, 2)) / 2, 1e-6);
  EXPECT_LT(findInput(*graph, "labels")->attrs.getInt("low"), -1000000);
  EXPECT_EQ(findInput(*graph, "labels")->attrs.getInt("high"), 3);
}

TEST(Loss, ClassWeightsAndNoReductionAreTakenApart) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch"});
  m.weight("importance", {3}, {1, 2, 4});
  onnx::NodeProto *node =
      m.node("SoftmaxCrossEntropyLoss", {"logits", "labels", "importance"}, {"loss"}, "n/loss");
  setInt(node, "ignore_index", -100);
  m.output("loss");
  auto graph = m.graphOf(batch4());
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("loss_divisible"), 1);
  auto values = given({1, -100, 0, 2});
  values["importance"] = tensorOf({3}, {1, 2, 4});
  EXPECT_NEAR(lossOf(*graph, values), (2 * rowLoss(0, 1) + rowLoss(2, 0) + 4 * rowLoss(3, 2)) / 7,
              1e-6);
}

// Question answering: the mean over starts and the mean over ends, which may ignore different rows.
TEST(Loss, MeansOverTwoLabelsAddUp) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch"});
  m.ids("ends", {"batch"});
  m.weight("half", {}, llvm::ArrayRef<float>(0.5f));
  for (auto [labels, loss] : {std::pair("labels", "first"), std::pair("ends", "second")})
    setInt(m.node("SoftmaxCrossEntropyLoss", {"logits", labels}, {loss}), "ignore_index", -100);
  m.node("Add", {"first", "second"}, {"both"});
  m.node("Mul", {"both", "half"}, {"loss"});
  m.output("loss");
  auto graph = m.graphOf(batch4());
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("loss_divisible"), 1);
  EXPECT_EQ(m.notes.size(), 1u);
  auto values = given({1, -100, 0, 2});
  values["ends"] = idsOf({4}, {0, 1, -100, -100});
  EXPECT_NEAR(lossOf(*graph, values),
              ((rowLoss(0, 1) + rowLoss(2, 0) + rowLoss(3, 2)) / 3 + (rowLoss(0, 0) + rowLoss(1, 1)) / 2) / 2, 1e-6);
  auto count = [&](llvm::ArrayRef<int64_t> labels, llvm::ArrayRef<int64_t> ends) {
    values["labels"] = idsOf({4}, labels);
    values["ends"] = idsOf({4}, ends);
    auto all = evaluateGraph(*graph, values);
    return all->find(graph->output("loss_count"))->second.asDouble(0);
  };
  // The weight of a part: its rows, where both ignore as many.
  EXPECT_EQ(count({1, 2, 0, 2}, {0, 1, 2, 1}), 4);
  EXPECT_EQ(count({1, 2, -100, 2}, {0, 1, 2, -100}), 3);
  EXPECT_EQ(count({-100, -100, -100, -100}, {-100, -100, -100, -100}), 0);
}

TEST(Loss, SmoothingThatTheExporterDroppedIsRefused) {
  auto error = [](const std::string &smoothing) {
    TestModel m = logitsModel();
    m.ids("labels", {"batch"});
    onnx::NodeProto *loss = m.node("SoftmaxCrossEntropyLoss", {"logits", "labels"}, {"loss"}, "n/loss");
    addMetadata(loss->mutable_metadata_props(), "pkg.torch.onnx.fx_node",
                "%c : [num_users=1] = call_function[target=torch.ops.aten.cross_entropy_loss.default](args = (%y, %labels" + smoothing +
                    "), kwargs = {})");
    m.output("loss");
    return m.errorOf(batch4());
  };
  EXPECT_EQ(error(", None, 1, -100, 0.1"),
            "n/loss: label_smoothing: got 0.1 in PyTorch, but a loss without it in the file: the exporter drops it");
  EXPECT_EQ(error(", None, 1, -100, 0.0"), "");
  EXPECT_EQ(error(""), "");
}

TEST(Loss, LinearStepsAfterTheMeanAreSeenThrough) {
  TestModel m = logitsModel();
  m.weight("half", {}, llvm::ArrayRef<float>(0.5f));
  m.node("ReduceMean", {"logits"}, {"mean"}, "n/mean");
  m.node("Neg", {"mean"}, {"negative"}, "n/neg");
  m.node("Mul", {"negative", "half"}, {"objective"}, "n/objective");
  m.output("objective");
  ImportOptions o = batch4();
  o.loss = "objective";
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("loss_divisible"), 1);
  EXPECT_FALSE(graph->output("correct"));
  double sum = 0;
  for (float x : kLogits)
    sum += x;
  EXPECT_NEAR(lossOf(*graph, given({0, 0, 0, 0})), -0.5 * sum / 12, 1e-6);
}

TEST(Loss, AnyOtherScalarMustNotBeCut) {
  TestModel m = logitsModel();
  m.node("ReduceL2", {"logits"}, {"norm"}, "n/norm");
  m.output("norm");
  m.output("logits");
  ImportOptions o = batch4();
  o.loss = "norm";
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->attrs.getInt("loss_divisible"), 0);
  ASSERT_EQ(m.notes.size(), 1u);
  EXPECT_EQ(m.notes[0],
            "loss 'norm' is not a mean that can be taken apart: one rank and one micro-step only");
  double squares = 0;
  for (float x : kLogits)
    squares += x * x;
  EXPECT_NEAR(lossOf(*graph, given({0, 0, 0, 0})), std::sqrt(squares), 1e-5);
}

TEST(Loss, CrossEntropyIsAddedToLogits) {
  TestModel m = logitsModel();
  m.output("logits");
  ImportOptions o = batch4(); // auto: the only output, the labels are a new input
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  ASSERT_TRUE(findInput(*graph, "labels"));
  EXPECT_EQ(findInput(*graph, "labels")->result()->type(), Type(DType::I64, {4}));
  EXPECT_TRUE(findInput(*graph, "labels")->result()->batchMajor());
  EXPECT_NEAR(lossOf(*graph, given({1, -100, 0, 2})),
              (rowLoss(0, 1) + rowLoss(2, 0) + rowLoss(3, 2)) / 3, 1e-6);
  o.ignoreIndex = 0;
  auto other = m.graphOf(o);
  ASSERT_TRUE(other);
  EXPECT_NEAR(lossOf(*other, given({1, 0, 0, 2})), (rowLoss(0, 1) + rowLoss(3, 2)) / 2, 1e-6);
}

TEST(Loss, MeanSquaresDropATrailingOne) {
  TestModel m;
  m.floats("x", {"batch", "3"});
  m.weight("m.head.weight", {3, 1}, {1, 2, 3});
  m.node("MatMul", {"x", "m.head.weight"}, {"logits"}, "n/MatMul");
  m.output("logits");
  ImportOptions o = batch4();
  o.loss = "mse";
  o.labels = "target";
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_EQ(findInput(*graph, "target")->result()->type(), Type(DType::F32, {4}));
  auto values = given({0, 0, 0, 0});
  values["m.head.weight"] = values["head.weight"] = tensorOf({3, 1}, {1, 2, 3});
  values["target"] = tensorOf({4}, {1, 2, 3, 4});
  double want = 0;
  for (int i = 0; i < 4; ++i) {
    double y = kLogits[3 * i] + 2 * kLogits[3 * i + 1] + 3 * kLogits[3 * i + 2];
    want += (y - (i + 1)) * (y - (i + 1)) / 4;
  }
  EXPECT_NEAR(lossOf(*graph, values), want, 1e-5);
}

TEST(Loss, Mistakes) {
  TestModel m = logitsModel();
  m.ids("labels", {"batch", "2"});
  m.node("ReduceSum", {"labels"}, {"used"}, "n/used");
  m.output("logits");
  ImportOptions o = batch4();
  o.loss = "nothing";
  EXPECT_EQ(
      m.errorOf(o),
      "--loss: got 'nothing', wanted auto, cross_entropy, mse or an output of the model: 'logits'");
  o.loss = "cross_entropy";
  o.logits = "scores";
  EXPECT_EQ(m.errorOf(o), "--logits: got 'scores', wanted an output of the model: 'logits'");
  o.logits = "";
  o.loss = "logits";
  EXPECT_EQ(m.errorOf(o), "logits: the loss: got f32[4,3], wanted one float");
  TestModel two = logitsModel();
  two.node("Relu", {"logits"}, {"b"}, "n/b");
  two.node("Neg", {"logits"}, {"a"}, "n/a");
  two.output("a");
  two.output("b");
  EXPECT_EQ(two.errorOf(batch4()),
            "m.onnx: no loss: got outputs 'a', 'b', wanted one called 'loss' or 'logits'");
}

/// decoder_input_ids = [start, labels without the last], ignored ones replaced by the padding.
TEST(Loss, LabelsAreShiftedRight) {
  TestModel m;
  m.ids("decoder_input_ids", {"batch", "tgt"});
  m.weight("m.table.weight", {5, 5}, 1);
  m.node("Gather", {"m.table.weight", "decoder_input_ids"}, {"logits"}, "n/Gather");
  m.output("logits");
  ImportOptions o;
  o.dims = {{"batch", 2}, {"tgt", 3}};
  o.shiftRight = ImportOptions::ShiftRight{4, 2};
  auto graph = m.graphOf(o);
  ASSERT_TRUE(graph);
  EXPECT_FALSE(findInput(*graph, "decoder_input_ids"));
  llvm::StringMap<Tensor> values;
  for (const Parameter &p : graph->parameters)
    values[p.name] = Tensor(DType::F32, p.type.dims);
  values["labels"] = idsOf({2, 3}, {1, 3, 0, 0, -100, -100});
  auto run = evaluateGraph(*graph, values);
  ASSERT_TRUE(bool(run));
  for (const Op &op : graph->ops())
    if (op.is(kGather)) {
      EXPECT_EQ((*run)[op.operand(1)], idsOf({2, 3}, {2, 1, 3, 2, 0, 4}));
    }

  TestModel without = logitsModel();
  without.output("logits");
  ImportOptions bad = batch4();
  bad.shiftRight = o.shiftRight;
  EXPECT_EQ(
      without.errorOf(bad),
      "--shift-right: got a model that does not read 'decoder_input_ids', wanted one that does");
}

} // namespace
} // namespace shardc::test
