// SPDX-License-Identifier: Apache-2.0
// Weights multiplied at once: at every stage and cut the plan is sound, attention writes one gradient, and weight gradients are born in
// their bucket.
#include "tests/passes/CompileText.h"
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

/// Self-attention of one head of 8; k is frozen in the second form.
std::string model(bool freeze) {
  std::string text = R"(
graph @merged level=imported {batch=4} [
  parameter "l.0.q.weight" : f32[8,8]
  parameter "l.0.k.weight" FROZEN : f32[8,8]
  parameter "l.0.v.weight" : f32[8,8]
  parameter "l.1.weight" : f32[5,8]
  %x = input {name="x"} : f32[4,3,8] batch
  %labels = input {name="labels", low=0, high=5} : i64[4,3] batch
  %q = param {name="l.0.q.weight"} : f32[8,8]
  %k = param {name="l.0.k.weight"} : f32[8,8]
  %v = param {name="l.0.v.weight"} : f32[8,8]
  %w = param {name="l.1.weight"} : f32[5,8]
  %xq = matmul %x, %q {transpose_a=0, transpose_b=1} : f32[4,3,8] batch
  %xk = matmul %x, %k {transpose_a=0, transpose_b=1} : f32[4,3,8] batch
  %xv = matmul %x, %v {transpose_a=0, transpose_b=1} : f32[4,3,8] batch
  %hq = reshape %xq {dims=[4,3,1,8]} : f32[4,3,1,8] batch
  %hk = reshape %xk {dims=[4,3,1,8]} : f32[4,3,1,8] batch
  %hv = reshape %xv {dims=[4,3,1,8]} : f32[4,3,1,8] batch
  %a, %lse = attention %hq, %hk, %hv {scale=1.0} : f32[4,3,1,8] batch, f32[4,1,3] batch
  %r = reshape %a {dims=[4,3,8]} : f32[4,3,8] batch
  %logits = matmul %r, %w {transpose_a=0, transpose_b=1} : f32[4,3,5] batch
  %flat = reshape %logits {dims=[12,5]} : f32[12,5] batch
  %to = reshape %labels {dims=[12]} : i64[12] batch
  %sum, %count, %correct, %l = cross_entropy %flat, %to {ignore_index=-100} : f32[], f32[], f32[], f32[12]
  output "loss_sum" %sum
  output "loss_count" %count
]
)";
  size_t at = text.find("FROZEN ");
  return text.replace(at, 7, freeze ? "frozen " : "");
}

plan::Plan compiled(bool freeze, CompileOptions options) {
  return compileText(model(freeze), options);
}

unsigned count(const plan::Plan &plan, StringRef program, StringRef kernel) {
  unsigned n = 0;
  for (const plan::Program &p : plan.programs())
    for (const plan::Command &c : p.commands())
      n += p.name() == program && c.kernel() == kernel;
  return n;
}

TEST(MergedProducts, OneProductEachWay) {
  plan::Plan plan = compiled(false, {});
  EXPECT_EQ(count(plan, "eval", "matmul"), 2u);
  EXPECT_EQ(count(plan, "train", "matmul"), 5u); // two forward; logits' two gradients; that of the three weights
  EXPECT_EQ(count(plan, "train", "concat"), 1u); // loss and count
  EXPECT_EQ(count(plan, "train", "copy"), 0u);
}

TEST(MergedProducts, EveryCutIsSound) {
  for (unsigned ranks : {1, 3})
    for (unsigned zero : {0, 1, 2, 3})
      for (unsigned accumulate : {1, 2, 3})
        for (bool freeze : {false, true}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, stage " + std::to_string(zero) + ", accumulate " + std::to_string(accumulate));
          CompileOptions options;
          options.ranks = ranks;
          options.zero = zero;
          options.accumulate = accumulate;
          plan::Plan plan = compiled(freeze, options);
          StringRef last = accumulate == 1 ? "train" : "train_last";
          EXPECT_EQ(count(plan, last, "copy"), 0u);
          EXPECT_EQ(count(plan, last, "matmul"), freeze ? 6u : 5u); // q and v are neighbours then
        }
}

/// q and k multiply another value too: both gradients add up in the bucket, where v's lies beside them.
TEST(MergedProducts, ASecondUseOfSomeAddsUpInPlace) {
  std::string text = model(false);
  auto insert = [&](StringRef before, const std::string &lines) { text.insert(text.find(before.str()), lines); };
  insert("  %labels =", "  %z = input {name=\"z\"} : f32[2,8]\n");
  insert("  %r = reshape", R"(  %zq = matmul %z, %q {transpose_a=0, transpose_b=1} : f32[2,8]
  %zk = matmul %z, %k {transpose_a=0, transpose_b=1} : f32[2,8]
  %zz = mul %zq, %zk : f32[2,8]
  %more = reduce_sum %zz {axes=[0,1], keep_dims=0} : f32[]
)");
  for (std::string name : {"q", "k", "v"}) { // with biases
    insert("  parameter \"l.1.weight\"", "  parameter \"l.0." + name + ".bias\" : f32[8]\n");
    insert("  %w =", "  %" + name + "b = param {name=\"l.0." + name + ".bias\"} : f32[8]\n");
    for (std::string by : {"x", "z"})
      if (size_t at = text.find("  %" + by + name + " = matmul"); at != std::string::npos) {
        const std::string type = by == "x" ? "f32[4,3,8] batch\n" : "f32[2,8]\n";
        text.replace(at, 5, "  %p" + by + name);
        text.insert(text.find('\n', at) + 1, "  %" + by + name + " = add %p" + by + name + ", %" + name + "b : " + type);
      }
  }
  insert("  %flat =", "  %louder = mul %logits, %more : f32[4,3,5] batch\n");
  text.replace(text.find("reshape %logits"), 15, "reshape %louder");
  auto resize = [&](StringRef from, StringRef to) { // so that biases are neighbours, too
    for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to.str());
  };
  resize(",8]", ",64]"), resize("[8,", "[64,"), resize("[8]", "[64]");
  for (unsigned ranks : {1, 2})
    for (unsigned zero : {0, 1, 2, 3})
      for (unsigned accumulate : {1, 2}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, stage " + std::to_string(zero) + ", accumulate " + std::to_string(accumulate));
        CompileOptions options;
        options.ranks = ranks;
        options.zero = zero;
        options.accumulate = accumulate;
        const plan::Plan plan = compileText(text, options);
        ASSERT_GT(plan.programs_size(), 0);
        StringRef first = accumulate == 1 ? "train" : "train_first";
        EXPECT_EQ(count(plan, first, "copy"), 0u);
        unsigned products = 0, sums = 0; // of both uses, over what they add to
        for (const plan::Program &p : plan.programs())
          for (const plan::Command &c : p.commands())
            if (p.name() == first && c.outputs_size() == 1 && c.in_place_size() == 1 && c.in_place(0) && c.outputs(0).dims(0) == 128) {
              products += c.kernel() == "matmul";
              sums += c.kernel() == "fused" && c.outputs(0).dims_size() == 1;
            }
        EXPECT_EQ(products, 1u);
        EXPECT_EQ(sums, 1u);
      }
}

/// The two gradients of a gate are written side by side, where the product of both reads them.
TEST(MergedProducts, GradientsOfAGateAreBornSideBySide) {
  constexpr StringLiteral kGated = R"(
graph @gated level=imported {batch=4} [
  parameter "l.0.wi_0.weight" : f32[16,8]
  parameter "l.0.wi_1.weight" : f32[16,8]
  parameter "l.1.weight" : f32[5,16]
  %x = input {name="x"} : f32[4,8] batch
  %labels = input {name="labels", low=0, high=5} : i64[4] batch
  %w0 = param {name="l.0.wi_0.weight"} : f32[16,8]
  %w1 = param {name="l.0.wi_1.weight"} : f32[16,8]
  %w = param {name="l.1.weight"} : f32[5,16]
  %a = matmul %x, %w0 {transpose_a=0, transpose_b=1} : f32[4,16] batch
  %b = matmul %x, %w1 {transpose_a=0, transpose_b=1} : f32[4,16] batch
  %t = tanh %a : f32[4,16] batch
  %h = mul %t, %b : f32[4,16] batch
  %logits = matmul %h, %w {transpose_a=0, transpose_b=1} : f32[4,5] batch
  %sum, %count, %correct, %l = cross_entropy %logits, %labels {ignore_index=-100} : f32[], f32[], f32[], f32[4]
  output "loss_sum" %sum
  output "loss_count" %count
]
)";
  const plan::Plan plan = compileText(kGated);
  ASSERT_GT(plan.programs_size(), 0);
  EXPECT_EQ(count(plan, "train", "concat"), 1u); // loss and count
  unsigned parts = 0;
  for (const plan::Command &c : plan.programs(0).commands())
    for (const plan::Ref &out : c.outputs())
      parts += c.kernel() == "fused" && out.strides_size() == 2 && out.strides(0) == 32 && out.strides(1) == 1;
  EXPECT_EQ(parts, 2u);
}

} // namespace
} // namespace shardc
