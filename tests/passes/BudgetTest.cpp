// SPDX-License-Identifier: Apache-2.0
// Searches over made-up memory, against looking at everything; and over a real model.
#include "passes/Budget.h"
#include "frontend/Importer.h"
#include "ir/base/Error.h"
#include "ir/plan/Report.h"
#include "passes/Pipeline.h"
#include "gtest/gtest.h"
#include "llvm/Support/Parallel.h"
#include <atomic>
#include <random>

using namespace shardc;

namespace {

/// A plan that says nothing but what it needs.
plan::Plan needing(uint64_t bytes, double ms) {
  plan::Plan plan;
  plan.set_floor_bytes(bytes / 3);
  plan::Space &space = *plan.add_spaces();
  space.set_kind(plan::Space::DEVICE);
  space.set_bytes(bytes - bytes / 3);
  plan.set_predicted_ms(ms);
  return plan;
}

/// Memory as ZeRO has it: states cut by stage, activations by rows.
struct Model {
  uint64_t parameters = 1000, row = 37, once = 50;
  int64_t mostRows = 1 << 30; ///< more cannot be compiled
  int64_t noLarger = 1 << 30; ///< batches that need not be looked at
  mutable std::atomic<unsigned> compiled = 0;
  mutable std::atomic<bool> lookedFurther = false;

  uint64_t bytes(const Setting &s) const {
    uint64_t stages[] = {parameters, 2 * parameters,
                         parameters}; // parameters, state, gradients: cut at stages 3, 1, 2
    unsigned cutAt[] = {3, 1, 2};
    uint64_t sum = once + row * uint64_t(s.batch) + (s.accumulate > 1 ? parameters / 2 : 0);
    for (int i = 0; i < 3; ++i)
      sum += s.zero >= cutAt[i] ? (stages[i] + s.ranks - 1) / s.ranks : stages[i];
    return sum;
  }
  double ms(const Setting &s) const { return s.accumulate * (10 + double(s.batch) + s.zero); }
  llvm::Expected<plan::Plan> operator()(const Setting &s) const {
    ++compiled;
    if (s.batch > noLarger)
      lookedFurther = true;
    if (s.batch > mostRows)
      return userError("too large");
    return needing(bytes(s), ms(s));
  }
};

TEST(Budget, LargestBatchIsWhatLookingAtAllFinds) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    Model model{.parameters = 1 + random() % 5000, .row = random() % 90, .once = random() % 100};
    if (random() % 4 == 0)
      model.mostRows = 1 + int64_t(random() % 400);
    uint64_t budget = 200 + random() % 30000;
    Setting setting{random() % 2 ? 1 : 1 + int64_t(random() % 500), 2, unsigned(random() % 4), 1};
    int64_t want = 0, end = model.row ? int64_t(budget / model.row) + 2 : int64_t(1) << 24;
    end = std::min(end, model.mostRows);
    auto fits = [&](int64_t batch) { return model.bytes({batch, 2, setting.zero, 1}) <= budget; };
    if (model.row == 0 && fits(1))
      want = end;
    while (model.row && want < end && fits(want + 1))
      ++want;
    Trials trials(model, budget);
    auto found = largestBatch(trials, setting);
    ASSERT_TRUE(bool(found));
    EXPECT_EQ(found->most ? found->most->setting.batch : 0, want) << i;
    if (found->more) {
      EXPECT_EQ(found->more->setting.batch, want + 1);
      EXPECT_FALSE(trials.fits(*found->more));
    } else {
      EXPECT_EQ(found->refused, want == int64_t(1) << 24 ? "" : "too large");
    }
    if (model.row && model.mostRows == 1 << 30) {
      EXPECT_LE(model.compiled, 10u) << "budget " << budget << " row " << model.row;
    }
    EXPECT_LE(model.compiled, 60u);
  }
}

/// Memory that is no line: a smaller step above some batch, as where logits are taken in chunks.
TEST(Budget, LargestBatchOfABentLine) {
  for (uint64_t budget = 10; budget < 4000; budget += 61) {
    auto bytes = [](int64_t batch) {
      return uint64_t(batch < 40 ? 2 * batch : 80 + 30 * (batch - 40)) + uint64_t(batch % 3);
    };
    std::atomic<unsigned> compiled = 0;
    auto compile = [&](const Setting &s) -> llvm::Expected<plan::Plan> {
      ++compiled;
      return needing(bytes(s.batch), 1);
    };
    Trials trials(compile, budget);
    auto found = largestBatch(trials, {});
    ASSERT_TRUE(found && found->most && found->more);
    int64_t batch = found->most->setting.batch;
    EXPECT_LE(bytes(batch), budget);
    EXPECT_GT(bytes(batch + 1), budget);
    EXPECT_LE(compiled, 24u) << budget;
  }
}

/// One batch that takes more than the two behind it.
TEST(Budget, LargestBatchBehindABump) {
  auto compile = [&](const Setting &s) -> llvm::Expected<plan::Plan> {
    return needing(uint64_t(100 * s.batch) + (s.batch == 32 ? 250 : 0), 1);
  };
  for (uint64_t budget : {3100, 3299, 3300, 3399, 3400, 3450, 3500}) {
    Trials trials(compile, budget);
    auto found = largestBatch(trials, {});
    ASSERT_TRUE(found && found->most && found->more);
    EXPECT_EQ(found->most->setting.batch, budget < 3300 ? 31 : int64_t(budget / 100)) << budget;
    EXPECT_EQ(found->more->setting.batch, found->most->setting.batch + 1);
    EXPECT_GT(found->more->bytes, budget);
  }
}

TEST(Budget, ErrorOfBatchOneIsTheUsers) {
  Model model{.mostRows = 0};
  Trials trials(model, 1000);
  auto found = largestBatch(trials, {});
  ASSERT_FALSE(bool(found));
  EXPECT_EQ(llvm::toString(found.takeError()), "too large");
}

/// Whatever is listed fits, and is the least change of its kind; whatever fits is listed, by its kind.
TEST(Budget, ChangesAreTheSmallestThatFit) {
  std::mt19937 random(2);
  unsigned listed = 0;
  for (int i = 0; i < 300; ++i) {
    Model model{.parameters = 100 + random() % 3000, .row = 1 + random() % 60, .once = random() % 100};
    unsigned ranks = 1u << random() % 3;
    Setting now{1 + int64_t(random() % 96), ranks, ranks > 1 ? unsigned(random() % 4) : 0,
                1 + unsigned(random() % 3)};
    uint64_t least = model.bytes({1, 8 * ranks, 3, 1}), most = model.bytes(now);
    uint64_t budget = least / 2 + random() % most;
    auto fits = [&](Setting s) { return model.bytes(s) <= budget; };
    if (fits(now))
      continue;
    Trials trials(model, budget);
    trials.add(now, needing(model.bytes(now), model.ms(now)));
    model.noLarger = now.batch;
    std::vector<Trial> changes = changesThatFit(trials, now);
    EXPECT_FALSE(model.lookedFurther);
    listed += changes.size();
    bool stage = false, steps = false, rows = false, more = false;
    for (const Trial &change : changes) {
      const Setting &s = change.setting;
      EXPECT_TRUE(fits(s));
      EXPECT_EQ(change.bytes, model.bytes(s));
      Setting less = s;
      if (s.ranks == now.ranks && s.batch == now.batch) {
        stage = true;
        --less.zero;
        EXPECT_FALSE(fits(less));
      } else if (s.ranks == now.ranks && s.samples() == now.samples()) {
        steps |= s.zero == now.zero;
        for (int64_t cut = 1; cut < now.batch / s.batch; ++cut) {
          bool even = now.batch % cut == 0;
          EXPECT_FALSE(even && fits({now.batch / cut, s.ranks, s.zero, unsigned(now.accumulate * cut)}));
        }
      } else if (s.ranks == now.ranks) {
        rows |= s.zero == now.zero;
        ++less.batch;
        EXPECT_EQ(s.accumulate, now.accumulate);
        EXPECT_FALSE(fits(less));
      } else {
        more = true;
      }
    }
    EXPECT_TRUE(std::is_sorted(changes.begin(), changes.end(), [](auto &a, auto &b) {
      return std::pair(a.setting.ranks, a.msPerSample()) < std::pair(b.setting.ranks, b.msPerSample());
    }));
    bool wantStage = false, wantSteps = false, wantMore = false;
    for (unsigned zero = now.zero + 1; zero <= 3 && now.ranks > 1; ++zero)
      wantStage |= fits({now.batch, now.ranks, zero, now.accumulate});
    for (int64_t cut = 2; cut <= now.batch; ++cut)
      wantSteps |= now.batch % cut == 0 &&
                   fits({now.batch / cut, now.ranks, now.zero, unsigned(now.accumulate * cut)});
    for (unsigned times = 2; times <= 8; times *= 2)
      wantMore |= fits({now.batch, now.ranks * times, 3, now.accumulate});
    EXPECT_EQ(stage, wantStage);
    EXPECT_EQ(steps, wantSteps);
    EXPECT_EQ(rows, fits({1, now.ranks, now.zero, now.accumulate}) && now.batch > 1);
    EXPECT_TRUE(more || !wantMore);
  }
  EXPECT_GT(listed, 300u);
}

/// On all cores, and where searches run side by side and have one core each.
TEST(Budget, CoresChangeNothing) {
  auto search = [](size_t i) {
    Model model{.parameters = 100 + 7 * i, .row = 1 + i % 60, .once = i};
    Trials trials(model, 200 + 90 * i);
    std::vector<std::tuple<Setting, uint64_t, double>> found;
    auto largest = largestBatch(trials, {1 + int64_t(i % 50), 2, unsigned(i % 4), 1});
    if (largest && largest->most)
      found.emplace_back(largest->most->setting, largest->most->bytes, largest->most->stepMs);
    const Setting now{400 + int64_t(i % 7), 1 + unsigned(i % 2), 0, 1};
    if (model.bytes(now) > trials.budget())
      for (const Trial &change : changesThatFit(trials, now))
        found.emplace_back(change.setting, change.bytes, change.stepMs);
    return found;
  };
  std::vector<decltype(search(0))> alone, beside(200);
  for (size_t i = 0; i < beside.size(); ++i)
    alone.push_back(search(i));
  llvm::parallelFor(0, beside.size(), [&](size_t i) { beside[i] = search(i); });
  EXPECT_GT(llvm::count_if(alone, [](const auto &found) { return found.size() > 2; }), 50);
  for (size_t i = 0; i < beside.size(); ++i)
    EXPECT_TRUE(llvm::equal(alone[i], beside[i], [](const auto &a, const auto &b) {
      return !(std::get<0>(a) < std::get<0>(b)) && !(std::get<0>(b) < std::get<0>(a)) &&
             std::get<1>(a) == std::get<1>(b) && std::get<2>(a) == std::get<2>(b);
    })) << i;
}

/// A small T5: each batch compiled, against the search.
TEST(Budget, LargestBatchOfARealModel) {
  auto model = OnnxModel::open(SHARDC_SOURCE_DIR "/tests/models/reverse-t5.onnx");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  auto compileBatch = [&](const Setting &s) -> llvm::Expected<plan::Plan> {
    ImportOptions import;
    import.dims = {{"batch", 5}, {"src", 7}, { "tgt", 6 }};
    import.batchInstead = s.batch;
    auto graph = importOnnx(**model, import);
    if (!graph)
      return graph.takeError();
    CompileOptions options;
    options.ranks = s.ranks;
    options.zero = s.zero;
    options.accumulate = s.accumulate;
    auto result = compile(std::move(*graph), plan::Model(), options);
    if (!result)
      return result.takeError();
    return std::move(*result->plan);
  };
  std::vector<uint64_t> bytes = {0};
  for (int64_t batch = 1; batch <= 11; ++batch) {
    auto plan = compileBatch({batch, 2, 2, 1});
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(plan->batch(), uint64_t(batch));
    bytes.push_back(rankBytes(*plan));
  }
  for (int64_t batch = 1; batch < 11; batch += 4) {
    for (uint64_t budget : {bytes[batch], bytes[batch + 1] - 1}) {
      Trials trials(compileBatch, budget);
      auto found = largestBatch(trials, {5, 2, 2, 1});
      ASSERT_TRUE(found && found->most && found->more);
      EXPECT_EQ(found->most->setting.batch, batch);
      EXPECT_EQ(found->most->bytes, bytes[batch]);
      EXPECT_EQ(found->more->bytes, bytes[batch + 1]);
    }
  }
}

} // namespace
