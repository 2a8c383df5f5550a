// SPDX-License-Identifier: Apache-2.0
// A loss in chunks: the loss, the counts and all gradients are those of the whole, and no value is as large as the logits were.
#include "passes/ChunkLoss.h"
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "ir/ops/Reference.h"
#include "passes/Passes.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

constexpr int64_t kRows = 10, kHidden = 6, kClasses = 33;

/// Outputs by the reference functions; inputs and parameters are drawn in the order of the ops.
std::vector<std::pair<std::string, std::vector<double>>> evaluated(const Graph &graph) {
  DenseMap<const Value *, Tensor> values;
  std::mt19937 random(7);
  for (const Op &op : graph.ops()) {
    const Value *v = op.result();
    if (op.is(kInput) || op.is(kParam)) {
      std::vector<double> drawn(v->type().numElements());
      for (double &x : drawn)
        x = v->type().isFloat() ? std::normal_distribution<double>()(random) : random() % 5 == 0 ? -100 : double(random() % kClasses);
      values[v] = fromDoubles(v->type().dtype, v->type().dims, drawn);
      continue;
    }
    if (op.is(kConstant)) {
      values[v] = op.attrs.getTensor("value");
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (const Value *operand : op.operands())
      operands.push_back(operand ? &values.find(operand)->second : nullptr);
    Tensors results = cantFail(evaluateOp(op, operands));
    for (auto [i, result] : enumerate(results))
      values[op.result(i)] = result;
  }
  std::vector<std::pair<std::string, std::vector<double>>> outputs;
  for (auto &[name, value] : graph.outputs())
    outputs.push_back({name, toDoubles(values.find(value)->second)});
  return outputs;
}

std::unique_ptr<Graph> withGradients(StringRef head) {
  std::string text = "graph @head level=imported {batch=2} [\n" + head.str() + R"(
  output "loss_sum" %sum
  output "loss_count" %count
  output "correct" %correct
])";
  auto graph = cantFail(parseGraph(text, "head"));
  CompileOptions options;
  for (auto pass : {insertGradients, simplify, cse, dce})
    cantFail(pass(*graph, options));
  return graph;
}

void compareChunks(StringRef head, bool cut = true) {
  auto graph = withGradients(head);
  auto wanted = evaluated(*graph);
  for (int64_t rows : {1, 3, 4, 7}) {
    auto chunked = graph->clone();
    chunkLoss(*chunked, rows * kClasses * 8);
    cantFail(dce(*chunked, {}));
    if (Error error = verify(*chunked))
      FAIL() << toString(std::move(error));
    int64_t largest = 0, losses = 0;
    for (const Op &op : chunked->ops()) {
      losses += op.is(kCrossEntropy);
      for (unsigned i = 0; i < op.numResults(); ++i)
        if (const Dims &dims = op.result(i)->type().dims; dims.size() > 1 && dims.back() == kClasses && dims[0] != kHidden)
          largest = std::max(largest, op.result(i)->type().numElements());
    }
    int64_t chunks = (kRows + rows - 1) / rows, each = (kRows + chunks - 1) / chunks;
    EXPECT_EQ(largest, cut ? each * kClasses : kRows * kClasses);
    EXPECT_EQ(losses, cut ? (kRows + each - 1) / each : 1);
    auto got = evaluated(*chunked);
    ASSERT_EQ(got.size(), wanted.size());
    for (auto [a, b] : zip(got, wanted)) {
      EXPECT_EQ(a.first, b.first);
      ASSERT_EQ(a.second.size(), b.second.size());
      for (auto [x, y] : zip(a.second, b.second))
        EXPECT_NEAR(x, y, 1e-12 * (1 + std::abs(y))) << a.first;
    }
  }
}

/// T5's: tied and scaled, two dims of rows.
TEST(ChunkLoss, OfATiedEmbedding) {
  compareChunks(R"(
  parameter "shared" : f64[33,6]
  parameter "v" : f64[6,6]
  %ids = input {name="x"} : f64[2,5,6] batch
  %labels = input {name="labels"} : i64[2,5] batch
  %shared = param {name="shared"} : f64[33,6]
  %v = param {name="v"} : f64[6,6]
  %h = matmul %ids, %v : f64[2,5,6] batch
  %factor = constant {value=dense<f64[]: 0.25>} : f64[]
  %scaled = mul %h, %factor : f64[2,5,6] batch
  %wt = transpose %shared {perm=[1,0]} : f64[6,33]
  %logits = matmul %scaled, %wt : f64[2,5,33] batch
  %flat = reshape %logits {dims=[10,33]} : f64[10,33] batch
  %rows = reshape %labels {dims=[10]} : i64[10] batch
  %sum, %cross.count, %hits, %lse = cross_entropy %flat, %rows {ignore_index=-100} : f64[], f64[], f64[], f64[10]
  %count = mul %cross.count, %factor : f64[]
  %correct = neg %hits : f64[])");
}

TEST(ChunkLoss, OfAWeightTheOtherWayRound) {
  compareChunks(R"(
  parameter "w" : f64[6,33]
  %x = input {name="x"} : f64[10,6] batch
  %labels = input {name="labels"} : i64[10] batch
  %w = param {name="w"} : f64[6,33]
  %logits = matmul %x, %w : f64[10,33] batch
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f64[], f64[], f64[], f64[10])");
}

/// A batch beyond all bounds makes large chunks, not a program without end.
TEST(ChunkLoss, OfAnyBatchHasABoundedNumberOfChunks) {
  auto graph = withGradients(R"(
  parameter "w" : f64[6,33]
  %x = input {name="x"} : f64[1000000,6] batch
  %labels = input {name="labels"} : i64[1000000] batch
  %w = param {name="w"} : f64[6,33]
  %logits = matmul %x, %w : f64[1000000,33] batch
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f64[], f64[], f64[], f64[1000000])");
  chunkLoss(*graph, kClasses * 8);
  cantFail(dce(*graph, {}));
  int64_t rows = 0;
  for (const Op &op : graph->ops())
    rows += op.is(kCrossEntropy) ? op.operand(0)->type().dim(0) : 0;
  EXPECT_EQ(rows, 1000000);
  EXPECT_LE(count_if(graph->ops(), [](const Op &op) { return op.is(kCrossEntropy); }), 256);
}

/// Who reads the logits needs all of them.
TEST(ChunkLoss, NotWhereOthersReadTheLogits) {
  compareChunks(R"(
  parameter "w" : f64[33,6]
  %x = input {name="x"} : f64[10,6] batch
  %labels = input {name="labels"} : i64[10] batch
  %w = param {name="w"} : f64[33,6]
  %logits = matmul %x, %w {transpose_b=1} : f64[10,33] batch
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f64[], f64[], f64[], f64[10]
  output "logits" %logits)",
                /*cut=*/false);
}

} // namespace
} // namespace shardc
