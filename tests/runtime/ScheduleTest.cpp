// SPDX-License-Identifier: Apache-2.0
// The numbers are those of transformers 5.17 (torch 2.11), printed with repr by
//   from transformers import get_scheduler
//   p = torch.nn.Parameter(torch.zeros(1)); o = torch.optim.SGD([p], lr=1e-3)
//   s = get_scheduler(NAME, o, num_warmup_steps=W, num_training_steps=N)
//   for i in range(N + 1): print(o.param_groups[0]["lr"]); o.step(); s.step()
#include "runtime/Schedule.h"
#include <gtest/gtest.h>

using namespace shardc;

namespace {

void expectRates(const char *name, int64_t warmup, int64_t total, std::vector<double> want) {
  Schedule schedule{*parseScheduleType(name), 1e-3, warmup, total};
  for (size_t step = 0; step < want.size(); ++step)
    EXPECT_NEAR(schedule.at(step), want[step], 1e-18) << name << " step " << step;
}

TEST(Schedule, IsTheTrainers) {
  expectRates("linear", 0, 7,
              {0.001, 0.0008571428571428571, 0.0007142857142857143, 0.0005714285714285714,
               0.00042857142857142855, 0.0002857142857142857, 0.00014285714285714284, 0.0});
  expectRates("linear", 3, 10,
              {0.0, 0.0003333333333333333, 0.0006666666666666666, 0.001, 0.0008571428571428571,
               0.0007142857142857143, 0.0005714285714285714, 0.00042857142857142855,
               0.0002857142857142857, 0.00014285714285714284, 0.0});
  expectRates("constant", 3, 4, {0.001, 0.001, 0.001, 0.001, 0.001});
  expectRates("cosine", 0, 7,
              {0.001, 0.0009504844339512095, 0.0008117449009293668, 0.0006112604669781572,
               0.00038873953302184284, 0.00018825509907063325, 4.9515566048790485e-05, 0.0});
  expectRates("cosine", 3, 10,
              {0.0, 0.0003333333333333333, 0.0006666666666666666, 0.001, 0.0009504844339512095,
               0.0008117449009293668, 0.0006112604669781572, 0.00038873953302184284,
               0.00018825509907063325, 4.9515566048790485e-05, 0.0});
  expectRates("constant_with_warmup", 3, 10,
              {0.0, 0.0003333333333333333, 0.0006666666666666666, 0.001, 0.001, 0.001, 0.001, 0.001,
               0.001, 0.001, 0.001});
}

TEST(Schedule, CountsStepsLikeTheTrainer) {
  EXPECT_EQ(warmupSteps(5, 0.5, 100), 5);
  EXPECT_EQ(warmupSteps(0, 0.06, 101), 7); // ceil(6.06)
  EXPECT_EQ(warmupSteps(0, 0, 101), 0);
  EXPECT_EQ(totalSteps(20, 3, 7), 20);
  EXPECT_EQ(totalSteps(0, 3, 7), 21);
  EXPECT_EQ(totalSteps(0, 0.5, 7), 4); // ceil(3.5)
}

TEST(Schedule, KnowsItsNames) {
  EXPECT_FALSE(parseScheduleType("polynomial"));
  EXPECT_EQ(parseScheduleType("cosine"), ScheduleType::Cosine);
}

} // namespace
