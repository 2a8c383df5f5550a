// SPDX-License-Identifier: Apache-2.0
// A bucket that the loss does not reach has gradients of zero, in every micro-step, at every stage.
#include "tests/passes/CompileText.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

constexpr StringLiteral kModel = R"(
graph @unused level=imported {batch=4} [
  parameter "layers.0.weight" : f32[2,3]
  parameter "layers.1.weight" : f32[2,3]
  %x = input {name="x"} : f32[4,3] batch
  %labels = input {name="labels", low=0, high=2} : i64[4] batch
  %w = param {name="layers.0.weight"} : f32[2,3]
  %unused = param {name="layers.1.weight"} : f32[2,3]
  %wt = transpose %w {perm=[1,0]} : f32[3,2]
  %logits = matmul %x, %wt : f32[4,2]
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f32[], f32[], f32[], f32[4]
  output "loss_sum" %sum
  output "loss_count" %count
]
)";

TEST(UnusedBucket, PlansAreSound) {
  for (unsigned ranks : {1, 3})
    for (unsigned zero : {0, 1, 2, 3})
      for (unsigned accumulate : {1, 2, 3}) {
        CompileOptions options;
        options.ranks = ranks;
        options.zero = zero;
        options.accumulate = accumulate;
        SCOPED_TRACE(std::to_string(ranks) + " ranks, stage " + std::to_string(zero) + ", accumulate " + std::to_string(accumulate));
        EXPECT_EQ(compileText(kModel, options).buckets_size(), 2);
      }
}

} // namespace
} // namespace shardc
