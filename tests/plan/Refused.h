// SPDX-License-Identifier: Apache-2.0
// Plans that are damaged, and what Check must say of them.
#pragma once

#include "ir/plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include "gtest/gtest.h"

namespace shardc {

inline std::string verdict(const plan::Plan &plan) { return llvm::toString(checkPlan(plan)); }

struct Damage {
  const char *name;
  void (*apply)(plan::Plan &);
  const char *message; ///< part of it
};

/// Check must refuse the damaged plan.
inline void expectRefused(plan::Plan plan, const Damage &damage) {
  damage.apply(plan);
  std::string got = verdict(plan);
  EXPECT_NE(got.find(damage.message), std::string::npos)
      << damage.name << "\n  got:    " << (got.empty() ? "sound" : got) << "\n  wanted: " << damage.message;
}

inline void expectRefused(plan::Plan (*make)(), llvm::ArrayRef<Damage> list) {
  for (const Damage &damage : list)
    expectRefused(make(), damage);
}

} // namespace shardc
