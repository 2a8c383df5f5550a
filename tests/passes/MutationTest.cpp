// SPDX-License-Identifier: Apache-2.0
// Damage to a compiled plan, at every place: `checkPlan` refuses it, or it changes no bit of any
// result.
#include "ir/graph/Text.h"
#include "ir/ops/Reference.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Scalars.h"
#include "passes/Pipeline.h"
#include "tests/passes/PlanInterpreter.h"
#include "tests/passes/SmallModel.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace llvm;

namespace shardc {
namespace {

class Mutation : public testing::Test {
protected:
  void SetUp() override {
    auto graph = parseGraph(kSmallModel, "model");
    ASSERT_TRUE(bool(graph));
    auto result = compile(std::move(*graph), {}, {});
    ASSERT_TRUE(bool(result));
    plan_ = *result->plan;
    ASSERT_EQ(toString(checkPlan(plan_)), "");
    wanted_ = results(plan_);
    ASSERT_FALSE(wanted_.empty());
  }

  /// Bytes of all that two steps and an evaluation leave; empty if a command cannot be run.
  static std::string results(const plan::Plan &plan) {
    PlanInterpreter run(plan, PlanInterpreter::Packed);
    std::mt19937 random(5);
    for (const plan::Parameter &p : plan.parameters()) {
      Dims dims(p.dims().begin(), p.dims().end());
      std::vector<double> values(numElements(dims));
      for (double &v : values)
        v = std::uniform_real_distribution(-1.0, 1.0)(random);
      run.writeParameter(p.name(), fromDoubles(DType(p.dtype()), dims, values));
    }
    run.writeInput("ids", Tensor::ofInts({3, 0, 6, 3}));
    run.writeInput("labels", Tensor::ofInts({1, -100, 5, 2}));
    for (auto [slot, value] : {std::pair(kLearningRate, 0.1), std::pair(kBeta1, 0.9),
                               std::pair(kBeta2, 0.99), std::pair(kEpsilon, 1e-8),
                               std::pair(kWeightDecay, 0.01), std::pair(kBiasCorrection1, 0.1),
                               std::pair(kBiasCorrection2, 0.01), std::pair(kMaxGradNorm, 1.0)})
      run.setScalar(slot, value);
    std::string bytes;
    auto keep = [&](const Tensor &t) { bytes.append(t.data<char>(), size_t(t.numBytes())); };
    for (const char *program : {"train", "update", "eval", "train", "update"}) {
      if (Error error = run.run(program)) {
        consumeError(std::move(error));
        return "";
      }
      for (const plan::Output &output : plan.outputs())
        if (output.program() == program)
          keep(run.readOutput(program, output.name()));
    }
    for (const plan::Parameter &p : plan.parameters())
      keep(run.readParameter(p.name()));
    return bytes;
  }

  /// Damages a copy. What a planner would have written along (size and bound of the space) is made
  /// to fit, so that the damage itself must be seen.
  void damage(const std::string &what, function_ref<void(plan::Plan &)> apply) {
    plan::Plan plan = plan_;
    apply(plan);
    uint64_t end = 0;
    for (const plan::Buffer &b : plan.buffers())
      end = std::max(end, b.offset() + b.bytes());
    plan.mutable_spaces(0)->set_bytes(alignTo(end, kAlignment));
    plan.mutable_spaces(0)->set_lower_bound(
        std::min(findPeak(plan, 0).bytes, plan.spaces(0).bytes()));
    ++tried_;
    if (Error error = checkPlan(plan)) {
      consumeError(std::move(error));
      ++refused_;
    } else if (std::string got = results(plan); !got.empty() && got != wanted_) {
      survivors_.push_back(what); // what no kernel would bind counts as refused, too
    }
  }

  void damageEachCommand(const std::string &what, function_ref<void(plan::Program &, int)> apply,
                         int last = 0) {
    for (int p = 0; p < plan_.programs_size(); ++p)
      for (int i = 0; i + last < plan_.programs(p).commands_size(); ++i)
        damage(what + " " + plan_.programs(p).name() + " " + std::to_string(i) + " " +
                   plan_.programs(p).commands(i).kernel(),
               [&](plan::Plan &plan) { apply(*plan.mutable_programs(p), i); });
  }

  void expectNoSurvivors() {
    std::string list;
    for (const std::string &what : survivors_)
      list += "  " + what + "\n";
    EXPECT_TRUE(survivors_.empty())
        << survivors_.size() << " of " << tried_ << " (" << refused_ << " refused)\n"
        << list;
    EXPECT_GT(refused_, tried_ / 2);
  }

  plan::Plan plan_;
  std::string wanted_;
  unsigned tried_ = 0, refused_ = 0;
  std::vector<std::string> survivors_;
};

TEST_F(Mutation, ShorterLifetimes) {
  for (int b = 0; b < plan_.buffers_size(); ++b) {
    if (plan_.buffers(b).persistent())
      continue;
    damage("begins later: " + plan_.buffers(b).name(),
           [&](plan::Plan &p) { p.mutable_buffers(b)->set_first(p.buffers(b).first() + 1); });
    damage("ends earlier: " + plan_.buffers(b).name(),
           [&](plan::Plan &p) { p.mutable_buffers(b)->set_last(p.buffers(b).last() - 1); });
  }
  expectNoSurvivors();
  EXPECT_EQ(refused_, tried_); // lifetimes are exact
}

TEST_F(Mutation, TwoBuffersInOnePlace) {
  for (int a = 0; a < plan_.buffers_size(); ++a)
    for (int b = 0; b < plan_.buffers_size(); ++b)
      if ((a + b) % 3 == 0 && plan_.buffers(a).offset() != plan_.buffers(b).offset())
        damage(plan_.buffers(a).name() + " over " + plan_.buffers(b).name(),
               [&](plan::Plan &p) { p.mutable_buffers(a)->set_offset(p.buffers(b).offset()); });
  expectNoSurvivors();
}

TEST_F(Mutation, ShiftedBuffers) {
  for (int b = 0; b < plan_.buffers_size(); ++b)
    for (int64_t by : {-256, 256, 512})
      if (int64_t(plan_.buffers(b).offset()) + by >= 0)
        damage(plan_.buffers(b).name() + " by " + std::to_string(by), [&](plan::Plan &p) {
          p.mutable_buffers(b)->set_offset(uint64_t(int64_t(p.buffers(b).offset()) + by));
        });
  expectNoSurvivors();
}

TEST_F(Mutation, SwappedCommands) {
  for (int distance : {1, 2, 5})
    damageEachCommand(
        "swapped",
        [&](plan::Program &p, int i) { p.mutable_commands()->SwapElements(i, i + distance); },
        distance);
  expectNoSurvivors();
}

/// A second contribution to a gradient is added where the first one lies, in the bucket: nothing in
/// a plan says that there were two.
bool addsToGradient(const plan::Plan &plan, const plan::Command &c) {
  return c.in_place_size() && c.in_place(0) &&
         plan.buffers(c.outputs(0).buffer()).kind() == plan::GRADIENT;
}

TEST_F(Mutation, DroppedCommands) {
  damageEachCommand("dropped", [&](plan::Program &p, int i) {
    if (addsToGradient(plan_, p.commands(i)))
      return; // its position stays, so that no lifetime moves
    plan::Command nothing;
    nothing.set_kernel("copy");
    nothing.set_phase(p.commands(i).phase());
    *p.mutable_commands(i) = nothing;
  });
  expectNoSurvivors();
}

TEST_F(Mutation, UndeclaredOverwriting) {
  damageEachCommand("in place",
                    [](plan::Program &p, int i) { p.mutable_commands(i)->clear_in_place(); });
  for (const std::string &what : survivors_)
    ADD_FAILURE() << what;
  EXPECT_GT(refused_, 3u);
}

TEST_F(Mutation, ShiftedResults) {
  damageEachCommand("result shifted", [](plan::Program &p, int i) {
    if (p.commands(i).outputs_size()) {
      plan::Ref &ref = *p.mutable_commands(i)->mutable_outputs(0);
      ref.set_offset(ref.offset() + byteSize(DType(ref.dtype())));
    }
  });
  damageEachCommand("result smaller", [](plan::Program &p, int i) {
    if (p.commands(i).outputs_size() && p.commands(i).outputs(0).dims_size()) {
      plan::Ref &ref = *p.mutable_commands(i)->mutable_outputs(0);
      ref.set_dims(0, ref.dims(0) - 1);
    }
  });
  expectNoSurvivors();
}

} // namespace
} // namespace shardc
