// SPDX-License-Identifier: Apache-2.0
// fp16: an overflow skips one update, halves the scale and changes nothing else, on all ranks alike; else the
// scale changes no bit.
#include "ir/plan/Scalars.h"
#include "runtime/Executor.h"
#include "runtime/ScalarSlots.h"
#include "runtime/comm/Local.h"
#include "runtime/host/Parallel.h"
#include "tests/passes/CompileText.h"
#include "tests/passes/SmallModel.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace llvm;

namespace shardc {
namespace {

struct Cut {
  unsigned ranks, zero, accumulate;
  Optimizer optimizer = Optimizer::AdamW;
};

plan::Plan compiled(const Cut &cut) {
  CompileOptions options;
  options.ranks = cut.ranks, options.zero = cut.zero, options.accumulate = cut.accumulate;
  options.optimizer = cut.optimizer;
  options.precision = Precision::Fp16;
  return compileText(kSmallModel, options);
}

/// All ranks of a plan, parameters drawn, step by step.
class Training {
public:
  explicit Training(const plan::Plan &plan) : plan_(plan), group_(makeLocalGroup(plan.ranks())) {
    for (unsigned r = 0; r < plan.ranks(); ++r) {
      executors_.push_back(
          cantFail(Executor::create(plan, {.communicator = plan.ranks() > 1 ? group_[r].get() : nullptr})));
      fillParameters(*executors_.back());
    }
  }

  /// The update `t`, from 0 on: batches and scalars depend on it alone.
  void step(int64_t t) {
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < plan_.ranks(); ++r)
      threads.emplace_back([&, r] {
        host::useThreads(1);
        Executor &executor = *executors_[r];
        Hyperparameters numbers;
        numbers.weightDecay = 0.1, numbers.momentum = 0.9, numbers.beta2 = 0.99;
        fillRank(executor.scalars(), r);
        fillScalars(executor.scalars(), numbers, 0.01, t, t == 0);
        const int64_t most = plan_.accumulate();
        for (int64_t k = 0; k < most; ++k) {
          for (const plan::Input &input : plan_.inputs())
            for (int64_t i = 0; i < 4; ++i)
              static_cast<int64_t *>(executor.buffer(input.buffer()))[i] =
                  (3 * i + 5 * t + 2 * k + r + input.name().size()) % 7;
          fillShardIndex(executor.scalars(), k, plan_.ranks(), r);
          const char *name = most == 1       ? "train"
                             : k == 0        ? "train_first"
                             : k + 1 == most ? "train_last"
                                             : "train_middle";
          cantFail(executor.run(executor.program(name)));
        }
        cantFail(executor.run(executor.program("update")));
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  double *scaleState(unsigned rank) {
    return static_cast<double *>(executors_[rank]->buffer(plan_.loss_scale_buffer()));
  }
  double output(unsigned rank, const char *program, const char *name) {
    const plan::Output *output = findOutput(plan_, program, name);
    void *at = output ? executors_[rank]->at(output->ref()) : nullptr;
    double wide = NAN;
    if (!at)
      ADD_FAILURE() << "no output " << name;
    else if (DType(output->ref().dtype()) == DType::F64)
      std::memcpy(&wide, at, 8);
    else
      wide = *static_cast<float *>(at);
    return wide;
  }
  /// Parameters, masters and optimizer state of all ranks, but what loss scaling remembers.
  std::string bytes() {
    std::string all;
    for (auto &executor : executors_)
      for (const plan::Bucket &bucket : plan_.buckets()) {
        auto add = [&](int64_t b) {
          if (b >= 0)
            all.append(static_cast<char *>(executor->buffer(uint32_t(b))), plan_.buffers(int(b)).bytes());
        };
        add(bucket.parameter_buffer());
        add(bucket.has_master_buffer() ? int64_t(bucket.master_buffer()) : -1);
        for (uint32_t state : bucket.state_buffers())
          add(state);
      }
    return all;
  }

private:
  void fillParameters(Executor &executor) {
    const unsigned rank = executor.rank();
    for (const plan::Bucket &bucket : plan_.buckets()) {
      uint32_t from = bucket.has_master_buffer() ? bucket.master_buffer() : uint32_t(bucket.parameter_buffer());
      int64_t held = plan_.buffers(int(from)).bytes() / (bucket.has_master_buffer() ? 4 : 2);
      int64_t first = held < int64_t(bucket.elements()) ? held * rank : 0;
      auto valueAt = [](int64_t i) { return float((i * 7 + 3) % 32 - 16) / 32; }; // an fp16 number
      for (int64_t i = 0; i < held && bucket.has_master_buffer(); ++i)
        static_cast<float *>(executor.buffer(from))[i] = valueAt(first + i);
      if (bucket.parameter_buffer() < 0)
        continue;
      held = plan_.buffers(bucket.parameter_buffer()).bytes() / 2;
      first = held < int64_t(bucket.elements()) ? held * rank : 0;
      for (int64_t i = 0; i < held; ++i) {
        _Float16 half = _Float16(valueAt(first + i));
        std::memcpy(static_cast<char *>(executor.buffer(uint32_t(bucket.parameter_buffer()))) + 2 * i, &half, 2);
      }
    }
  }

  const plan::Plan &plan_;
  std::vector<std::unique_ptr<Communicator>> group_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

const Cut kCuts[] = {{1, 0, 1},
                     {1, 0, 3},
                     {2, 0, 1},
                     {2, 1, 1},
                     {2, 2, 2},
                     {2, 3, 1},
                     {1, 0, 1, Optimizer::Sgd},
                     {1, 0, 1, Optimizer::Adam}};

TEST(LossScale, AnOverflowSkipsOneUpdate) {
  for (const Cut &cut : kCuts) {
    SCOPED_TRACE(testing::Message() << "ranks " << cut.ranks << " zero " << cut.zero << " accumulate "
                                    << cut.accumulate);
    plan::Plan plan = compiled(cut);
    Training disturbed(plan), quiet(plan);
    for (int t : {0, 1}) {
      disturbed.step(t);
      quiet.step(t);
      EXPECT_EQ(disturbed.output(0, "update", "skipped"), 0);
      EXPECT_EQ(disturbed.output(0, "update", "loss_scale"), 65536);
    }
    std::string before = disturbed.bytes();
    constexpr double kHuge = 0x1p30;
    double excess = disturbed.scaleState(0)[kScaleExcess];
    for (unsigned r = 0; r < cut.ranks; ++r)
      disturbed.scaleState(r)[kScaleExcess] = kHuge - 1;
    disturbed.step(2);
    EXPECT_TRUE(disturbed.bytes() == before) << "something was updated";
    for (unsigned r = 0; r < cut.ranks; ++r) {
      EXPECT_EQ(disturbed.output(r, "update", "skipped"), 1);
      EXPECT_FALSE(std::isfinite(disturbed.output(r, "update", "grad_norm")));
      double *state = disturbed.scaleState(r);
      EXPECT_EQ(state[kScaleExcess], kHuge / 2 - 1);
      EXPECT_EQ(state[kScaleGood], 0);
      EXPECT_EQ(state[kScaleUpdates], 2);
      EXPECT_EQ(state[kScaleSkipped], 1);
      state[kScaleExcess] = excess;
    }
    // From there on all goes as if the step had not been: Adam's step counter, too.
    for (int t : {3, 4}) {
      disturbed.step(t);
      quiet.step(t);
      EXPECT_EQ(disturbed.output(0, "update", "skipped"), 0);
      EXPECT_EQ(disturbed.output(0, "update", "grad_norm"), quiet.output(0, "update", "grad_norm"));
    }
    EXPECT_TRUE(disturbed.bytes() == quiet.bytes());
    EXPECT_FALSE(quiet.bytes() == before) << "nothing was updated at all";
  }
}

TEST(LossScale, ChangesNoBitWhereNothingUnderflows) {
  plan::Plan plan = compiled({1, 0, 1});
  Training one(plan), other(plan);
  other.scaleState(0)[kScaleExcess] = 1.0 / 4 - 1;
  one.step(0);
  other.step(0);
  // Powers of two: products and sums are the same digits.
  EXPECT_EQ(other.output(0, "update", "loss_scale"), 16384);
  EXPECT_EQ(one.output(0, "update", "grad_norm"), other.output(0, "update", "grad_norm"));
  EXPECT_TRUE(one.bytes() == other.bytes());
}

TEST(LossScale, GrowsAfterManyGoodUpdates) {
  plan::Plan plan = compiled({1, 0, 1});
  Training training(plan);
  training.scaleState(0)[kScaleGood] = kScaleGrowth - 2;
  training.step(0);
  EXPECT_EQ(training.scaleState(0)[kScaleExcess], 0);
  training.step(1);
  EXPECT_EQ(training.scaleState(0)[kScaleExcess], 1); // twice the initial one
  EXPECT_EQ(training.scaleState(0)[kScaleGood], 0);
  EXPECT_EQ(training.scaleState(0)[kScaleUpdates], 2);
}

} // namespace
} // namespace shardc
