// SPDX-License-Identifier: Apache-2.0
// A plan whose bytes are damaged, checksum repaired: it is refused, or it runs to its end. Never a
// signal.
#include "runtime/Executor.h"
#include "tests/passes/CompileText.h"
#include "tests/passes/SmallModel.h"
#include "tests/plan/PlanBytes.h"
#include "tests/plan/RankPlan.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace llvm;

namespace shardc {
namespace {

enum class Fate { Refused, NotBound, Failed, Ran };

Fate fateOf(StringRef bytes) {
  Expected<plan::Plan> plan = parsePlan(bytes, "p.plan");
  if (!plan) {
    consumeError(plan.takeError());
    return Fate::Refused;
  }
  auto executor = Executor::create(*plan);
  if (!executor) {
    consumeError(executor.takeError());
    return Fate::NotBound;
  }
  for (const plan::Input &input : plan->inputs())
    std::memset((*executor)->buffer(input.buffer()), 0, plan->buffers(input.buffer()).bytes());
  bool failed = false;
  for (int p = 0; p < plan->programs_size() && !failed; ++p)
    if (Error error = (*executor)->run(p)) {
      consumeError(std::move(error));
      failed = true;
    }
  return failed ? Fate::Failed : Fate::Ran;
}

/// Fates of the plan with one byte damaged, by each of `flips`: each byte in turn, or every so
/// many.
std::vector<unsigned> damageAll(const plan::Plan &plan, ArrayRef<unsigned> flips,
                                size_t every = 1) {
  std::vector<unsigned> fates(4);
  std::string good = serializePlan(plan);
  EXPECT_EQ(fateOf(good), Fate::Ran);
  for (size_t i = 0; i + 32 < good.size(); i += every)
    for (unsigned flip : flips) {
      std::string bad = good;
      bad[i] ^= char(flip);
      ++fates[size_t(fateOf(repaired(bad)))];
    }
  return fates;
}

void expectAllKinds(ArrayRef<unsigned> fates) {
  EXPECT_GT(fates[size_t(Fate::Refused)], 0u);
  EXPECT_GT(fates[size_t(Fate::NotBound)], 0u);
  EXPECT_GT(fates[size_t(Fate::Ran)], 0u);
}

TEST(Damage, OfTheSmallPlan) {
  expectAllKinds(damageAll(smallPlan(), {0x01, 0x02, 0x04, 0x40, 0x80, 0xff}));
}

TEST(Damage, OfACompiledPlan) { expectAllKinds(damageAll(compileText(kSmallModel), {0x01}, /*every=*/5)); }

TEST(Damage, OfAPlanForSeveralRanks) {
  std::string good = serializePlan(rankPlan(2, 3, 2));
  unsigned refused = 0, sound = 0;
  for (size_t i = 0; i + 32 < good.size(); ++i)
    for (unsigned flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] ^= char(flip);
      Expected<plan::Plan> plan = parsePlan(repaired(bad), "p.plan");
      ++(plan ? sound : refused);
      if (!plan)
        consumeError(plan.takeError());
    }
  EXPECT_GT(refused, sound);
  EXPECT_GT(sound, 0u); // names, costs
}

TEST(Damage, OfACompiledPlanInEachBitLong) {
  expectAllKinds(damageAll(compileText(kSmallModel), {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80}));
}

} // namespace
} // namespace shardc
