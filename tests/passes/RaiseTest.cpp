// SPDX-License-Identifier: Apache-2.0
// What `raise` puts together computes what the pieces did, at the edges too.
#include "ir/graph/Text.h"
#include "passes/Passes.h"
#include "tests/frontend/Evaluate.h"
#include <cmath>
#include <gtest/gtest.h>

namespace shardc {
namespace {

// As PyTorch exports scaled_dot_product_attention with a bool mask.
constexpr llvm::StringLiteral kAttentionText = R"(
graph @attention level=imported [
  %q = input {name="q"} : f32[3,2,4,8]
  %k = input {name="k"} : f32[3,2,5,8]
  %v = input {name="v"} : f32[3,2,5,8]
  %mask = input {name="mask"} : bool[3,1,1,5]
  %zero = constant {value=dense<f32[]: 0.0>} : f32[]
  %lowest = constant {value=dense<f32[]: -inf>} : f32[]
  %product = matmul %q, %k {transpose_a=0, transpose_b=1} : f32[3,2,4,5]
  %added = where %mask, %zero, %lowest : f32[3,1,1,5]
  %scores = add %product, %added : f32[3,2,4,5]
  %weights = softmax %scores : f32[3,2,4,5]
  %nan = is_nan %weights : bool[3,2,4,5]
  %safe = where %nan, %zero, %weights : f32[3,2,4,5]
  %y = matmul %safe, %v {transpose_a=0, transpose_b=0} : f32[3,2,4,8]
  output "y" %y
]
)";
constexpr llvm::StringLiteral kSoftmaxText = R"(
graph @softmax level=imported [
  %x = input {name="q"} : f32[3,2,4,8]
  %mask = input {name="columns"} : bool[3,1,1,8]
  %zero = constant {value=dense<f32[]: 0.0>} : f32[]
  %lowest = constant {value=dense<f32[]: -inf>} : f32[]
  %scores = where %mask, %x, %lowest : f32[3,2,4,8]
  %weights = softmax %scores : f32[3,2,4,8]
  %nan = is_nan %weights : bool[3,2,4,8]
  %y = where %nan, %zero, %weights : f32[3,2,4,8]
  output "y" %y
]
)";

Tensor waves(llvm::ArrayRef<int64_t> dims, double step) {
  Tensor t(DType::F32, dims);
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.mutableData<float>()[i] = float(std::sin(step * double(i)));
  return t;
}

/// Of row b all but the first b columns count; of the last none.
Tensor columns(int64_t rows, int64_t n) {
  Tensor t(DType::Bool, {rows, 1, 1, n});
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t j = 0; j < n; ++j)
      t.mutableData<uint8_t>()[b * n + j] = b + 1 < rows && j >= b;
  return t;
}

Tensor output(Graph &graph, const llvm::StringMap<Tensor> &given) {
  auto values = test::evaluateGraph(graph, given);
  EXPECT_TRUE(bool(values));
  return values->find(graph.outputs().front().second)->second;
}

void sameAfterRaise(llvm::StringRef text, const OpDef &gone) {
  llvm::StringMap<Tensor> given;
  given.insert({"q", waves({3, 2, 4, 8}, 0.7)});
  given.insert({"k", waves({3, 2, 5, 8}, 1.3)});
  given.insert({"v", waves({3, 2, 5, 8}, 0.3)});
  given.insert({"mask", columns(3, 5)});
  given.insert({"columns", columns(3, 8)});
  std::unique_ptr<Graph> graph = llvm::cantFail(parseGraph(text, "model"));
  Tensor before = output(*graph, given);
  llvm::cantFail(raise(*graph, {}));
  llvm::cantFail(dce(*graph, {}));
  for (const Op &op : graph->ops())
    EXPECT_FALSE(op.is(gone));
  Tensor after = output(*graph, given);
  const int64_t each = before.numElements() / 3;
  for (int64_t i = 0; i < before.numElements(); ++i) {
    EXPECT_NEAR(before.asDouble(i), after.asDouble(i), 1e-6) << i;
    if (i >= 2 * each) { // all is hidden
      EXPECT_EQ(after.asDouble(i), 0.0) << i;
    }
  }
}

TEST(Raise, AttentionOfRowsWhereAllIsHidden) { sameAfterRaise(kAttentionText, kSoftmax); }
TEST(Raise, SoftmaxOfRowsWhereAllIsHidden) { sameAfterRaise(kSoftmaxText, kIsNan); }

} // namespace
} // namespace shardc
