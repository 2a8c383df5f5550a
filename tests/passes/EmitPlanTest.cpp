// SPDX-License-Identifier: Apache-2.0
// A small model goes through the whole compiler; the plan is run by reference functions.
#include "ir/graph/Text.h"
#include "ir/ops/OpDef.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "tests/passes/CompileText.h"
#include "tests/passes/PlanInterpreter.h"
#include "tests/passes/SmallModel.h"
#include "llvm/ADT/StringMap.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

std::unique_ptr<Graph> model() {
  auto graph = parseGraph(kSmallModel, "model");
  if (!graph) {
    ADD_FAILURE() << toString(graph.takeError());
    return nullptr;
  }
  return std::move(*graph);
}

plan::Plan compiled(Precision precision, Optimizer optimizer = Optimizer::Sgd) {
  CompileOptions options;
  options.precision = precision;
  options.optimizer = optimizer;
  auto result = compile(model(), {}, options);
  if (!result) {
    ADD_FAILURE() << toString(result.takeError());
    return {};
  }
  return *result->plan;
}

Tensor randomTensor(DType dtype, ArrayRef<int64_t> dims, std::mt19937 &random) {
  std::vector<double> values(numElements(dims));
  for (double &v : values)
    v = std::uniform_real_distribution(-1.0, 1.0)(random);
  return fromDoubles(dtype, dims, values);
}

StringMap<Tensor> modelValues(DType dtype) {
  std::mt19937 random(3);
  StringMap<Tensor> values;
  auto graph = model();
  for (const Parameter &p : graph->parameters)
    values[p.name] = randomTensor(dtype, p.type.dims, random);
  values["ids"] = Tensor::ofInts({3, 0, 6, 3});
  values["labels"] = Tensor::ofInts({1, -100, 5, 2});
  return values;
}

/// loss_sum by evaluating the model op by op: SSA, no memory decisions.
double evaluatedLoss(const StringMap<Tensor> &values, DType dtype) {
  auto graph = model();
  DenseMap<Value *, Tensor> known;
  for (Op &op : graph->ops()) {
    if (op.is(kInput) || op.is(kParam)) {
      known[op.result()] = values.lookup(op.attrs.getString("name"));
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (Value *v : op.operands())
      operands.push_back(&known[v]);
    for (unsigned i = 0; i < op.numResults(); ++i) // the same model in the wanted precision
      if (op.result(i)->type().isFloat())
        op.result(i)->setType(Type(dtype, op.result(i)->type().dims));
    auto results = evaluateOp(op, operands);
    if (!results) {
      ADD_FAILURE() << op.mnemonic().str() << ": " << toString(results.takeError());
      return 0;
    }
    for (auto [i, tensor] : enumerate(*results))
      known[op.result(i)] = tensor;
  }
  return known[graph->output("loss_sum")].asDouble(0);
}

void load(PlanInterpreter &run, const plan::Plan &plan, const StringMap<Tensor> &values) {
  for (const plan::Parameter &p : plan.parameters())
    run.writeParameter(p.name(), values.lookup(p.name()));
  for (const plan::Input &input : plan.inputs())
    run.writeInput(input.name(), values.lookup(input.name()));
  run.setScalar(kLearningRate, 0.1);
  run.setScalar(kBeta1, 0.9);
  run.setScalar(kBeta2, 0.99);
  run.setScalar(kEpsilon, 1e-8);
  run.setScalar(kWeightDecay, 0.01);
  run.setScalar(kBiasCorrection1, 0.1);
  run.setScalar(kBiasCorrection2, 0.01);
  run.setScalar(kMaxGradNorm, 1);
  run.setScalar(kFirstUpdate, 1);
}

TEST(EmitPlan, IsSound) {
  for (Optimizer optimizer : {Optimizer::AdamW, Optimizer::Adam, Optimizer::Sgd}) {
    plan::Plan plan = compiled(Precision::Fp32, optimizer);
    EXPECT_EQ(toString(checkPlan(plan)), "");
  }
}

// Labels that are shifted right are none at a target of one token.
TEST(EmitPlan, AnEmptyOperandIsSound) {
  std::string text = kSmallModel.str();
  StringRef use = "embedding %e, %ids";
  text.replace(text.find(use), use.size(), "embedding %e, %shifted");
  text.insert(text.find("  %h0 ="), R"(  %rows = reshape %ids {dims=[4,1]} : i64[4,1]
  %given = reshape %labels {dims=[4,1]} : i64[4,1]
  %none = slice %given {starts=[0,0], sizes=[4,0], steps=[1,1]} : i64[4,0]
  %place = reshape %none {dims=[4,0,1]} : i64[4,0,1]
  %at = concat %place, %place {axis=2} : i64[4,0,2]
  %set = scatter_nd %rows, %at, %none {reduction="none"} : i64[4,1]
  %shifted = reshape %set {dims=[4]} : i64[4]
)");
  EXPECT_GT(compileText(text).programs_size(), 0);
}

TEST(EmitPlan, RepeatsItselfBitForBit) {
  EXPECT_EQ(serializePlan(compiled(Precision::Fp32)), serializePlan(compiled(Precision::Fp32)));
}

TEST(EmitPlan, LossIsTheModels) {
  plan::Plan plan = compiled(Precision::Fp64);
  auto values = modelValues(DType::F64);
  PlanInterpreter run(plan, PlanInterpreter::Packed);
  load(run, plan, values);
  double want = evaluatedLoss(values, DType::F64);
  for (const char *program : {"train", "eval"}) {
    ASSERT_EQ(toString(run.run(program)), "");
    EXPECT_NEAR(run.readOutput(program, "loss_sum").asDouble(0), want, 1e-12 * want) << program;
    EXPECT_EQ(run.readOutput(program, "loss_count").asDouble(0), 3) << program;
  }
}

TEST(EmitPlan, GradientsAreThoseOfCentralDifferences) {
  plan::Plan plan = compiled(Precision::Fp64);
  auto values = modelValues(DType::F64);
  PlanInterpreter run(plan, PlanInterpreter::Packed);
  load(run, plan, values);
  ASSERT_EQ(toString(run.run("train")), "");
  unsigned compared = 0;
  for (const plan::Parameter &p : plan.parameters()) {
    if (!p.trainable())
      continue;
    Tensor gradient = run.readGradient(p.name());
    Tensor original = values[p.name()];
    for (int64_t i = 0; i < gradient.numElements(); ++i, ++compared) {
      double side[2];
      for (int k = 0; k < 2; ++k) {
        std::vector<double> moved = toDoubles(original);
        moved[i] += k ? 1e-5 : -1e-5;
        values[p.name()] = fromDoubles(DType::F64, original.dims(), moved);
        side[k] = evaluatedLoss(values, DType::F64);
      }
      EXPECT_NEAR(gradient.asDouble(i), (side[1] - side[0]) / 2e-5, 1e-7) << p.name() << " " << i;
    }
    values[p.name()] = original;
  }
  EXPECT_EQ(compared, 42u + 30 + 5 + 30 + 6 + 9);
}

TEST(EmitPlan, SharingMemoryChangesNoBit) {
  for (Optimizer optimizer : {Optimizer::AdamW, Optimizer::Sgd}) {
    plan::Plan plan = compiled(Precision::Fp32, optimizer);
    auto values = modelValues(DType::F32);
    PlanInterpreter packed(plan, PlanInterpreter::Packed),
        disjoint(plan, PlanInterpreter::Disjoint);
    for (PlanInterpreter *run : {&packed, &disjoint}) {
      load(*run, plan, values);
      for (const char *program : {"train", "update", "eval", "train", "update", "eval"})
        ASSERT_EQ(toString(run->run(program)), "");
    }
    for (const plan::Parameter &p : plan.parameters()) {
      EXPECT_EQ(packed.readParameter(p.name()), disjoint.readParameter(p.name())) << p.name();
      EXPECT_EQ(packed.readParameter(p.name()) == values[p.name()], !p.trainable()) << p.name();
    }
    for (const plan::Output &output : plan.outputs()) {
      Tensor value = packed.readOutput(output.program(), output.name());
      EXPECT_EQ(value, disjoint.readOutput(output.program(), output.name())) << output.name();
      EXPECT_TRUE(std::isfinite(value.asDouble(0))) << output.name();
    }
  }
}

TEST(EmitPlan, GradientsAreBornInTheirBucket) {
  plan::Plan plan = compiled(Precision::Fp32);
  for (const plan::Program &program : plan.programs())
    for (const plan::Command &c : program.commands())
      EXPECT_FALSE(c.kernel() == "copy" && plan.strings(c.place()) == "copy gradient")
          << plan.buffers(c.outputs(0).buffer()).name();
}

TEST(EmitPlan, WhatGoesRoundLivesThroughAllMicroSteps) {
  CompileOptions options;
  options.ranks = 2;
  options.zero = 2;
  options.accumulate = 3;
  auto result = compile(model(), {}, options);
  ASSERT_TRUE(bool(result)) << toString(result.takeError());
  const plan::Plan &plan = *result->plan;
  ASSERT_EQ(plan.programs(1).name(), "train_middle");
  const uint64_t begin = plan.programs(0).commands_size(), end = begin + plan.programs(1).commands_size();
  std::vector<bool> written(plan.buffers_size(), false);
  unsigned carried = 0;
  for (const plan::Command &c : plan.programs(1).commands()) {
    for (const plan::Ref &ref : c.inputs()) {
      const plan::Buffer &buffer = plan.buffers(ref.buffer());
      if (ref.absent() || written[ref.buffer()] || buffer.persistent())
        continue;
      ++carried; // from the micro-step before: sums of gradients
      EXPECT_LT(buffer.first(), begin) << buffer.name();
      EXPECT_GT(buffer.last(), end) << buffer.name();
    }
    for (const plan::Ref &ref : c.outputs())
      written[ref.buffer()] = written[ref.buffer()] || plan.buffers(ref.buffer()).first() >= begin;
  }
  EXPECT_GT(carried, 0u);
}

TEST(EmitPlan, RegionsSayWhatPersists) {
  plan::Plan plan = compiled(Precision::Fp32);
  ASSERT_EQ(plan.spaces_size(), 1);
  uint64_t state = 0, bound = 0;
  for (const plan::Buffer &buffer : plan.buffers())
    if (buffer.persistent() && buffer.kind() == plan::OPTIMIZER_STATE)
      state += (buffer.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  std::vector<std::string> names;
  for (const plan::Region &region : plan.spaces(0).regions()) {
    names.push_back(region.name());
    bound += region.lower_bound();
    if (region.name() == "optimizer state") {
      EXPECT_EQ(region.bytes(), state);
    }
  }
  // One packing of all that comes and goes: the bounds add up, so that no border costs anything.
  EXPECT_EQ(bound, plan.spaces(0).lower_bound());
  EXPECT_EQ(names, (std::vector<std::string>{"parameters", "optimizer state", "inputs, constants, scalars", "step"}));
}

TEST(EmitPlan, WorkspacesLiveDuringTheirCommands) {
  CompileOptions options;
  options.target = "cuda";
  auto result = compile(model(), {}, options);
  ASSERT_TRUE(bool(result)) << toString(result.takeError());
  EXPECT_EQ(toString(checkPlan(*result->plan)), "");
  uint64_t position = 0;
  unsigned workspaces = 0;
  for (const plan::Program &program : result->plan->programs())
    for (const plan::Command &c : program.commands()) {
      if (c.has_workspace()) {
        const plan::Buffer &buffer = result->plan->buffers(c.workspace().buffer());
        EXPECT_EQ(buffer.kind(), plan::WORKSPACE);
        EXPECT_EQ(buffer.first(), position);
        EXPECT_EQ(buffer.last(), position + 1);
        EXPECT_EQ(buffer.bytes(), uint64_t(c.workspace().dims(0)));
        ++workspaces;
      }
      ++position;
    }
  EXPECT_GT(workspaces, 0u);
}

} // namespace
} // namespace shardc
