// SPDX-License-Identifier: Apache-2.0
// Tokens and operations of one update, counted by hand.
#include "runtime/StepWork.h"
#include "ir/base/DType.h"
#include <gtest/gtest.h>

namespace shardc {
namespace {

plan::Input &input(plan::Plan &plan, DType dtype, std::initializer_list<int64_t> dims, int64_t high) {
  plan::Input &input = *plan.add_inputs();
  input.set_dtype(unsigned(dtype));
  for (int64_t dim : dims)
    input.add_dims(dim);
  input.set_high(high);
  return input;
}

TEST(StepWork, CountsTheFirstInputOfIndices) {
  plan::Plan plan;
  input(plan, DType::F32, {4, 7}, 10);
  input(plan, DType::I64, {4, 7}, 0); // a mask: any value goes
  input(plan, DType::I64, {4}, 10);
  plan::Input &labels = input(plan, DType::I64, {4, 5}, 10);
  labels.set_has_ignore(true);
  EXPECT_EQ(workOf(plan).tokens, 0);
  input(plan, DType::I64, {4, 6}, 10);
  input(plan, DType::I64, {4, 9}, 10);
  EXPECT_EQ(workOf(plan).tokens, 4 * 6);
  plan.set_ranks(3);
  plan.set_accumulate(2);
  EXPECT_EQ(workOf(plan).tokens, 4 * 6 * 3 * 2);
}

TEST(StepWork, CountsEachMicroStepAndTheUpdate) {
  auto flops = [](unsigned accumulate, std::initializer_list<std::pair<const char *, double>> programs) {
    plan::Plan plan;
    plan.set_ranks(2);
    plan.set_accumulate(accumulate);
    for (auto [name, flops] : programs) {
      plan::Program &program = *plan.add_programs();
      program.set_name(name);
      program.add_commands()->set_flops(flops);
      program.add_commands()->set_flops(1);
    }
    return workOf(plan).flops;
  };
  EXPECT_EQ(flops(1, {{"train", 100}, {"update", 10}, {"eval", 1000}}), 112);
  EXPECT_EQ(flops(2, {{"train_first", 100}, {"train_last", 200}, {"update", 10}}), 313);
  EXPECT_EQ(flops(5, {{"train_first", 100}, {"train_middle", 30}, {"train_last", 200}, {"update", 10}}), 310 + 3 + 3 * 31);
}

} // namespace
} // namespace shardc
