// SPDX-License-Identifier: Apache-2.0
// Every index that an input or a constant may hold has a place in what is picked from; one more row, and there is none.
#include "ir/graph/Text.h"
#include "passes/Pipeline.h"
#include "tests/plan/RankPlan.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

plan::Plan pickingPlan() {
  auto graph = cantFail(parseGraph(R"(
graph @picks level=imported {batch=2} [
  parameter "table" : f32[5,4]
  parameter "positions" : f32[8,4]
  parameter "bias" : f32[6]
  %ids = input {name="ids", low=0, high=5} : i64[2,3] batch
  %labels = input {name="labels", low=0, high=4, ignore=-100} : i64[6] batch
  %table = param {name="table"} : f32[5,4]
  %positions = param {name="positions"} : f32[8,4]
  %bias = param {name="bias"} : f32[6]
  %x = embedding %table, %ids : f32[2,3,4] batch
  %some = slice %positions {starts=[1,0], sizes=[6,4], steps=[1,1]} : f32[6,4]
  %where = constant {value=dense<i64[3]: 0,5,3>} : i64[3]
  %p = embedding %some, %where : f32[3,4]
  %columns = constant {value=dense<i64[4]: -6,5,0,2>} : i64[4]
  %b = gather %bias, %columns {axis=0} : f32[4]
  %h = add %x, %p : f32[2,3,4] batch
  %k = add %h, %b : f32[2,3,4] batch
  %logits = reshape %k {dims=[6,4]} : f32[6,4] batch
  %sum, %count, %correct, %lse = cross_entropy %logits, %labels {ignore_index=-100} : f32[], f32[], f32[], f32[6]
  output "loss_sum" %sum
  output "loss_count" %count
]
)", "picks"));
  auto result = compile(std::move(graph), {}, {});
  if (!result) {
    ADD_FAILURE() << toString(result.takeError());
    return {};
  }
  return *result->plan;
}

std::string verdict(const plan::Plan &plan) { return toString(checkPlan(plan)); }

plan::Input &input(plan::Plan &plan, StringRef name) {
  return *find_if(*plan.mutable_inputs(), [&](const plan::Input &i) { return i.name() == name; });
}

/// Writes `to` over each index `from` of the constants; how many there were.
unsigned replace(plan::Plan &plan, int64_t from, int64_t to) {
  unsigned count = 0;
  for (plan::ConstantData &constant : *plan.mutable_constants())
    for (size_t i = 0; i + 8 <= constant.data().size(); i += 8)
      if (std::memcmp(constant.data().data() + i, &from, 8) == 0) {
        std::memcpy(constant.mutable_data()->data() + i, &to, 8);
        ++count;
      }
  return count;
}

TEST(CheckIndices, OfInputs) {
  plan::Plan plan = pickingPlan();
  ASSERT_EQ(verdict(plan), "");
  input(plan, "ids").set_high(6);
  EXPECT_NE(verdict(plan).find("embedding): input ids: an index has no place: got 5, wanted one below 5"),
            std::string::npos)
      << verdict(plan);
  input(plan, "ids").set_high(5);
  input(plan, "ids").set_low(-5); // kernels count them from the end
  EXPECT_EQ(verdict(plan), "");
  input(plan, "ids").set_low(-6);
  EXPECT_NE(verdict(plan).find("input ids: an index has no place: got -6, wanted one below 5"),
            std::string::npos)
      << verdict(plan);
  input(plan, "ids").set_low(5), input(plan, "ids").set_high(5); // anything: known when it is there
  EXPECT_EQ(verdict(plan), "");
}

TEST(CheckIndices, OfClasses) {
  plan::Plan plan = pickingPlan();
  input(plan, "labels").set_high(5);
  EXPECT_NE(
      verdict(plan).find("cross_entropy): input labels: an index has no place: got 4, wanted one below 4"),
      std::string::npos)
      << verdict(plan);
  input(plan, "labels").set_high(4), input(plan, "labels").set_low(-1); // of classes none counts from the end
  EXPECT_NE(verdict(plan).find("input labels: an index has no place: got -1, wanted one below 4"),
            std::string::npos)
      << verdict(plan);
  input(plan, "labels").set_low(-100), input(plan, "labels").set_high(-99); // nothing but what is ignored
  EXPECT_EQ(verdict(plan), "");
}

TEST(CheckIndices, OfConstants) {
  // The slice of `positions` has 6 rows, `bias` has 6 columns; 5 is the last of both.
  for (auto [from, to] : {std::pair<int64_t, int64_t>{5, 6}, {-6, -7}, {3, INT64_MAX}, {2, INT64_MIN}}) {
    plan::Plan plan = pickingPlan();
    ASSERT_GE(replace(plan, from, to), 1u);
    EXPECT_NE(verdict(plan).find("constant: an index has no place: got " + std::to_string(to) +
                                 ", wanted one below 6"),
              std::string::npos)
        << verdict(plan);
  }
}

TEST(CheckIndices, OfATableThatIsAPart) {
  plan::Plan plan = pickingPlan();
  unsigned cut = 0;
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Command &c : *program.mutable_commands())
      if (c.kernel() == "embedding" && c.inputs(0).dims(0) == 5) {
        plan::Ref &table = *c.mutable_inputs(0), before = table;
        table.set_dims(0, 4);
        if (table.strides().empty())
          table.add_strides(4), table.add_strides(1);
        EXPECT_NE(verdict(plan).find("input ids: an index has no place: got 4, wanted one below 4"),
                  std::string::npos)
            << verdict(plan);
        table = before;
        ++cut;
      }
  EXPECT_EQ(cut, 2u); // of training and of evaluation
}

} // namespace
} // namespace shardc
