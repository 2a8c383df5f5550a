// SPDX-License-Identifier: Apache-2.0
// Damage to compiled plans, of every kind at every place: `checkPlan` refuses it, or it changes no bit of any result. What `checkPlan`
// lets pass is run, each rank and stream on a thread, with random pauses, in the plan's memory and in disjoint memory. What stays
// is listed. The quick test takes places at a stride; SHARDC_MUTATION_STRIDE sets it for all.
#include "frontend/Importer.h"
#include "passes/Pipeline.h"
#include "tests/passes/Mutations.h"
#include "tests/passes/PlanRunner.h"
#include "tests/passes/Refit.h"
#include <atomic>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <thread>

using namespace llvm;

namespace shardc {
namespace {

struct Config {
  const char *model; ///< "t5" or "deberta"
  unsigned ranks, zero, accumulate;
  std::string name() const {
    return std::string(model) + " " + std::to_string(ranks) + " ranks, stage " + std::to_string(zero) + ", accumulate " +
           std::to_string(accumulate);
  }
};

plan::Plan compiled(const Config &config) {
  bool t5 = StringRef(config.model) == "t5";
  auto model = OnnxModel::open(t5 ? "tests/models/tiny-t5/ts17-loss.onnx" : "tests/models/tiny-deberta/ts17-logits.onnx");
  ImportOptions import;
  import.dims = {{"batch", 2}, {"src", 3}};
  if (t5)
    import.dims.push_back({"tgt", 2});
  else
    import.logits = "logits";
  auto graph = importOnnx(**model, import);
  CompileOptions options;
  options.ranks = config.ranks;
  options.zero = config.zero;
  options.accumulate = config.accumulate;
  auto result = compile(std::move(*graph), {}, options);
  if (!result) {
    ADD_FAILURE() << toString(result.takeError());
    return {};
  }
  return *result->plan;
}

/// What became of the damages of one kind.
struct Fates {
  unsigned refused = 0, unbound = 0, harmless = 0, changed = 0;
  std::string places; ///< of those that did not stay without effect
};

class Mutation : public testing::Test {
protected:
  /// Every `stride`-th damage of each kind, counted from `offset`.
  void damageAll(const Config &config, unsigned stride, unsigned offset) {
    if (const char *text = std::getenv("SHARDC_MUTATION_STRIDE"))
      StringRef(text).getAsInteger(10, stride);
    plan::Plan plan = compiled(config);
    ASSERT_EQ(toString(checkPlan(plan)), "");
    std::string wanted = runPlan(plan, {.disjoint = true}).bytes;
    ASSERT_FALSE(wanted.empty());
    ASSERT_EQ(runPlan(plan, {.delaySeed = 1}).bytes, wanted);
    std::map<std::string, unsigned> seen;
    eachDamage(plan, [&](StringRef kind, function_ref<std::string()> place, function_ref<void(plan::Plan &)> apply) {
      if (unsigned &n = seen[kind.str()]; (n++ + offset) % stride)
        return;
      plan::Plan damaged = plan;
      apply(damaged);
      refitSpace(damaged);
      judge(kind.str(), std::move(damaged), config.name() + ": " + place());
      if (survivors_.size() >= 200)
        runSurvivors(wanted);
    });
    runSurvivors(wanted);
  }

  /// Runs, while others run: they pause most of the time.
  struct Survivor {
    plan::Plan plan;
    std::string kind, place;
    RunResult packed, disjoint;
  };

  void judge(const std::string &kind, plan::Plan damaged, const std::string &place) {
    if (Error error = checkPlan(damaged)) {
      consumeError(std::move(error));
      ++fates_[kind].refused;
    } else {
      survivors_.push_back({std::move(damaged), kind, place, {}, {}});
    }
  }

  void runSurvivors(const std::string &wanted) {
    std::atomic<size_t> next = 0;
    auto work = [&] {
      for (size_t i; (i = next++) < survivors_.size();) {
        Survivor &s = survivors_[i];
        s.packed = runPlan(s.plan, {.delaySeed = 2 * i + 1});
        if (s.packed.bytes == wanted)
          s.disjoint = runPlan(s.plan, {.disjoint = true, .delaySeed = 2 * i + 2});
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back(work);
    for (std::thread &thread : threads)
      thread.join();
    for (const Survivor &s : survivors_) {
      Fates &fates = fates_[s.kind];
      bool same = s.disjoint.bytes == wanted;
      ++(!s.packed.bound ? fates.unbound : same ? fates.harmless : fates.changed);
      if (s.packed.bound && !same)
        fates.places += "\n    " + s.place + (s.packed.bytes.empty() ? " (fails)" : "");
    }
    survivors_.clear();
  }

  void expectAllSeen() {
    unsigned tried = 0, refused = 0;
    std::printf("%-42s %8s %8s %8s %8s\n", "damage", "refused", "unbound", "harmless", "changed");
    for (auto &[kind, f] : fates_) {
      std::printf("%-42s %8u %8u %8u %8u\n", kind.c_str(), f.refused, f.unbound, f.harmless, f.changed);
      if (kind != kOtherPart && kind != kOtherParameter) {
        EXPECT_EQ(f.changed, 0u) << kind << f.places;
      }
      tried += f.refused + f.unbound + f.harmless + f.changed;
      refused += f.refused;
    }
    std::printf("%-42s %8u of %u\n", "refused in all", refused, tried);
    EXPECT_GE(fates_.size(), 15u);
    EXPECT_GT(refused, tried * 3 / 4);
  }

  std::map<std::string, Fates> fates_;
  std::vector<Survivor> survivors_;
};

TEST_F(Mutation, SomePlaces) {
  unsigned offset = 0;
  for (const Config &config : {Config{"t5", 2, 3, 3}, Config{"t5", 3, 1, 1}, Config{"deberta", 2, 2, 2}, Config{"deberta", 4, 0, 1}})
    damageAll(config, 61, offset += 13);
  expectAllSeen();
}

TEST_F(Mutation, EveryPlaceOfTwoPlansLong) {
  for (const Config &config : {Config{"t5", 2, 3, 2}, Config{"deberta", 3, 1, 1}})
    damageAll(config, 1, 0);
  expectAllSeen();
}

TEST_F(Mutation, SomePlacesOfAllPlansLong) {
  unsigned offset = 0;
  for (const char *model : {"t5", "deberta"})
    for (unsigned ranks : {1, 2, 3, 4})
      for (unsigned zero = 0; zero <= (ranks > 1 ? 3u : 0u); ++zero)
        for (unsigned accumulate : {1, 2, 3})
          damageAll({model, ranks, zero, accumulate}, 211, offset += 13);
  expectAllSeen();
}

} // namespace
} // namespace shardc
