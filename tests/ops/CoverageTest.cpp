// SPDX-License-Identifier: Apache-2.0
// Walks the op table: no op without its facts, test cases and a kernel.
#include "ir/graph/Builder.h"
#include "ir/ops/StepScalars.h"
#include "ir/plan/Scalars.h"
#include "runtime/host/Kernel.h"
#include "tests/ops/Cases.h"
#include "gtest/gtest.h"
#include <set>

using namespace shardc;
using namespace shardc::test;

namespace {

/// Have no kernel: they say where memory is, or fold before a plan is made.
bool needsNoKernel(const OpDef &def) { return def.view || def.operands.empty() || &def == &kRange || &def == &kPack; }

TEST(Coverage, everyOpHasItsFacts) {
  std::set<llvm::StringRef> mnemonics;
  for (const OpDef *def : allOps()) {
    SCOPED_TRACE(def->mnemonic);
    EXPECT_TRUE(mnemonics.insert(def->mnemonic).second) << "mnemonic twice";
    EXPECT_EQ(findOp(def->mnemonic), def);
    EXPECT_TRUE(def->infer);
    EXPECT_NE(bool(def->gradient), bool(def->notDifferentiable)) << "a gradient or a reason";
    EXPECT_TRUE(def->scalar || def->evaluate || def->operands.empty()) << "no reference";
    EXPECT_FALSE(def->scalar && def->evaluate);
    EXPECT_FALSE(def->inPlaceRequired && def->inPlace.empty());
  }
}

TEST(Coverage, everyOpHasCases) {
  std::set<const OpDef *> covered;
  std::set<std::string> names;
  for (const OpCase &c : allCases()) {
    covered.insert(c.def);
    EXPECT_TRUE(names.insert(std::string(c.def->mnemonic) + "_" + c.what).second)
        << c.def->mnemonic << "_" << c.what << " twice";
  }
  for (const OpDef *def : allOps())
    if (!def->operands.empty()) {
      EXPECT_TRUE(covered.count(def)) << def->mnemonic << " has no case";
    }
}

TEST(Coverage, everyOpHasAHostKernel) {
  std::set<llvm::StringRef> kernels;
  for (llvm::StringRef name : host::kernelNames()) {
    EXPECT_TRUE(kernels.insert(name).second) << name.str() << " twice";
    EXPECT_TRUE(findOp(name)) << "kernel " << name.str() << " is of no op";
  }
  for (const OpDef *def : allOps())
    if (!needsNoKernel(*def) && !def->scalar) { // pointwise ops run fused
      EXPECT_TRUE(kernels.count(def->mnemonic)) << def->mnemonic << " has no host kernel";
    }
}

// ir cannot see ir/plan/Scalars.h, so it repeats the numbers.
TEST(Coverage, scalarSlotsAreThoseOfThePlan) {
  EXPECT_EQ(step::kCount, int64_t(kNumScalars));
  EXPECT_EQ(unsigned(step::kLearningRate), unsigned(kLearningRate));
  EXPECT_EQ(unsigned(step::kBeta1), unsigned(kBeta1));
  EXPECT_EQ(unsigned(step::kBeta2), unsigned(kBeta2));
  EXPECT_EQ(unsigned(step::kEpsilon), unsigned(kEpsilon));
  EXPECT_EQ(unsigned(step::kWeightDecay), unsigned(kWeightDecay));
  EXPECT_EQ(unsigned(step::kMomentum), unsigned(kMomentum));
  EXPECT_EQ(unsigned(step::kNesterov), unsigned(kNesterov));
  EXPECT_EQ(unsigned(step::kBiasCorrection1), unsigned(kBiasCorrection1));
  EXPECT_EQ(unsigned(step::kBiasCorrection2), unsigned(kBiasCorrection2));
  EXPECT_EQ(unsigned(step::kMaxGradNorm), unsigned(kMaxGradNorm));
  EXPECT_EQ(unsigned(step::kDecayAll), unsigned(kDecayAll));
  EXPECT_EQ(unsigned(step::kFirstUpdate), unsigned(kFirstUpdate));
  EXPECT_EQ(unsigned(step::kRank), unsigned(kRank));
  EXPECT_EQ(unsigned(step::kSkipUpdate), unsigned(kSkipUpdate));
  EXPECT_EQ(step::kScaleStateCount, int64_t(kNumScaleStates));
  EXPECT_EQ(unsigned(step::kScaleExcess), unsigned(kScaleExcess));
  EXPECT_EQ(unsigned(step::kScaleGood), unsigned(kScaleGood));
  EXPECT_EQ(unsigned(step::kScaleUpdates), unsigned(kScaleUpdates));
  EXPECT_EQ(unsigned(step::kScaleSkipped), unsigned(kScaleSkipped));
  EXPECT_EQ(step::kScaleGrowth, kScaleGrowth);
  EXPECT_EQ(step::kMostScale, kMostScale);
}

} // namespace
