// SPDX-License-Identifier: Apache-2.0
// Ranks, micro-steps and stages change neither loss nor gradient nor update: plans of a small model, run by reference functions in
// double, against the sum of what one rank computes for each part of the batch.
#include "ir/graph/Text.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Scalars.h"
#include "tests/passes/CompileText.h"
#include "tests/passes/GroupInterpreter.h"
#include "tests/passes/SmallModel.h"
#include "llvm/ADT/StringMap.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

constexpr unsigned kParts = 6;

plan::Plan compiled(unsigned ranks, unsigned zero, unsigned accumulate, uint64_t bucketBytes = 0) {
  CompileOptions options;
  options.ranks = ranks;
  options.zero = zero;
  options.accumulate = accumulate;
  options.bucketBytes = bucketBytes;
  options.precision = Precision::Fp64;
  return compileText(kSmallModel, options);
}

struct Data {
  StringMap<Tensor> parameters;
  std::vector<Tensor> ids, labels; ///< by part
};

const Data &data() {
  static const Data data = [] {
    Data d;
    std::mt19937 random(5);
    auto graph = parseGraph(kSmallModel, "model");
    for (const Parameter &p : (*graph)->parameters) {
      std::vector<double> values(p.type.numElements());
      for (double &v : values)
        v = std::uniform_real_distribution(-1.0, 1.0)(random);
      d.parameters[p.name] = fromDoubles(DType::F64, p.type.dims, values);
    }
    for (unsigned i = 0; i < kParts; ++i) {
      auto draw = [&] { return int64_t(random() % 7); };
      d.ids.push_back(Tensor::ofInts({draw(), draw(), draw(), draw()}));
      d.labels.push_back(Tensor::ofInts({draw(), i % 2 ? -100 : draw(), draw(), draw()})); // counts differ
    }
    return d;
  }();
  return data;
}

struct Outcome {
  double loss = 0, count = 0, norm = 0;
  StringMap<std::vector<double>> gradients, parameters;
};

/// One update over all parts: rank r takes in micro-step k part k * ranks + r.
Outcome run(const plan::Plan &plan, PlanInterpreter::Memory memory) {
  GroupInterpreter group(plan, memory);
  for (const plan::Parameter &p : plan.parameters())
    group.writeParameter(p, data().parameters.lookup(p.name()));
  for (unsigned r = 0; r < group.size(); ++r)
    for (auto [slot, value] : {std::pair(kLearningRate, 0.1), {kBeta1, 0.9}, {kBeta2, 0.99}, {kEpsilon, 1e-8}, {kWeightDecay, 0.1},
                               {kBiasCorrection1, 0.1}, {kBiasCorrection2, 0.01}, {kMaxGradNorm, 0.05}, {kFirstUpdate, 1.0}})
      group.rank(r).setScalar(slot, value);
  std::string last = plan.accumulate() == 1 ? "train" : "train_last";
  for (unsigned k = 0; k < plan.accumulate(); ++k) {
    for (unsigned r = 0; r < group.size(); ++r) {
      group.rank(r).writeInput("ids", data().ids[k * group.size() + r]);
      group.rank(r).writeInput("labels", data().labels[k * group.size() + r]);
    }
    std::string program = k + 1 == plan.accumulate() ? last : k == 0 ? "train_first" : "train_middle";
    EXPECT_EQ(toString(group.run(program)), "") << program;
  }
  Outcome outcome;
  outcome.loss = group.rank(0).readOutput(last, "loss_sum").asDouble(0);
  outcome.count = group.rank(0).readOutput(last, "loss_count").asDouble(0);
  for (const plan::Parameter &p : plan.parameters())
    if (p.trainable())
      outcome.gradients[p.name()] = toDoubles(group.readGradient(p));
  EXPECT_EQ(toString(group.run("update")), "");
  outcome.norm = group.rank(0).readOutput("update", "grad_norm").asDouble(0);
  for (const plan::Parameter &p : plan.parameters())
    outcome.parameters[p.name()] = toDoubles(group.readParameter(p));
  return outcome;
}

/// Part by part on one rank, added up by hand: what `EmitPlanTest` compares with central differences.
Outcome sumOfParts() {
  plan::Plan plan = compiled(1, 0, 1);
  Outcome sum;
  for (unsigned i = 0; i < kParts; ++i) {
    PlanInterpreter rank(plan, PlanInterpreter::Disjoint);
    for (const plan::Parameter &p : plan.parameters())
      rank.writeParameter(p.name(), data().parameters.lookup(p.name()));
    rank.writeInput("ids", data().ids[i]);
    rank.writeInput("labels", data().labels[i]);
    EXPECT_EQ(toString(rank.run("train")), "");
    sum.loss += rank.readOutput("train", "loss_sum").asDouble(0);
    sum.count += rank.readOutput("train", "loss_count").asDouble(0);
    for (const plan::Parameter &p : plan.parameters()) {
      if (!p.trainable())
        continue;
      std::vector<double> &total = sum.gradients[p.name()], part = toDoubles(rank.readGradient(p.name()));
      total.resize(part.size());
      for (size_t j = 0; j < part.size(); ++j)
        total[j] += part[j];
    }
  }
  return sum;
}

void expectNear(const StringMap<std::vector<double>> &got, const StringMap<std::vector<double>> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (auto &entry : want) {
    const std::vector<double> &values = got.lookup(entry.first());
    ASSERT_EQ(values.size(), entry.second.size()) << entry.first().str();
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], entry.second[i], 1e-12) << entry.first().str() << " " << i;
  }
}

TEST(Zero, EveryCutGivesTheSameStep) {
  Outcome parts = sumOfParts(), first;
  for (auto [ranks, accumulate] : {std::pair(1, 6), {2, 3}, {3, 2}, {6, 1}})
    for (unsigned zero = 0; zero <= 3; ++zero)
      for (uint64_t bucketBytes : {0, 100}) {
        SCOPED_TRACE("ranks " + std::to_string(ranks) + " accumulate " + std::to_string(accumulate) + " stage " + std::to_string(zero) +
                     " bucket " + std::to_string(bucketBytes));
        plan::Plan plan = compiled(ranks, zero, accumulate, bucketBytes);
        ASSERT_GT(plan.programs_size(), 0);
        Outcome packed = run(plan, PlanInterpreter::Packed), disjoint = run(plan, PlanInterpreter::Disjoint);
        EXPECT_NEAR(packed.loss, parts.loss, 1e-12 * parts.loss);
        EXPECT_EQ(packed.count, parts.count);
        expectNear(packed.gradients, parts.gradients);
        expectNear(disjoint.gradients, parts.gradients);
        if (first.parameters.empty())
          first = packed;
        EXPECT_NEAR(packed.norm, first.norm, 1e-12);
        expectNear(packed.parameters, first.parameters);
      }
}

TEST(Zero, ALossThatIsNoSumOverRowsIsNotCut) {
  for (auto [ranks, accumulate, fine] : {std::tuple(1, 1, true), {2, 1, false}, {1, 2, false}}) {
    auto graph = parseGraph(kSmallModel, "model");
    (*graph)->attrs.set("loss_divisible", int64_t(0));
    CompileOptions options;
    options.ranks = ranks;
    options.accumulate = accumulate;
    auto result = compile(std::move(*graph), {}, options);
    EXPECT_EQ(bool(result), fine);
    std::string error = result ? "" : toString(result.takeError());
    EXPECT_EQ(StringRef(error).starts_with("loss: it is no sum over rows, so it cannot be cut into 2 parts"), !fine) << error;
  }
}

} // namespace
} // namespace shardc
