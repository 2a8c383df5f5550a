// SPDX-License-Identifier: Apache-2.0
// Optimizers with attribute `rounded`: the last result is what they store, rounded; the others are as without it.
#include "ir/ops/Reference.h"
#include "tests/ops/Harness.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

TEST(RoundedUpdate, isWhatIsStored) {
  int tried = 0;
  for (const OpDef *def : {&kAdamW, &kAdam, &kSgd})
    for (const OpCase &given : casesOf(*def))
      for (DType rounded : {DType::BF16, DType::F16}) {
        SCOPED_TRACE(std::string(def->mnemonic) + " " + given.what + " " + toString(rounded).str());
        auto run = [&](const OpCase &withAttrs, bool onHost) {
          llvm::Expected<CaseGraph> g = buildCase(withAttrs, DType::F32);
          EXPECT_TRUE(bool(g)) << llvm::toString(g.takeError());
          Values values = llvm::cantFail(interpret(*g->graph, g->feeds, onHost ? runKernel : evaluateOp, g->op->result()));
          Tensors results;
          for (unsigned i = 0; i < g->op->numResults(); ++i)
            results.push_back(values.find(g->op->result(i))->second);
          return results;
        };
        OpCase c = given;
        const Tensors plain = run(c, true);
        c.attrs.set("rounded", toString(rounded).str());
        for (bool onHost : {false, true}) {
          const Tensors got = run(c, onHost);
          ASSERT_EQ(got.size(), plain.size() + 1);
          const Tensor wanted = fromDoubles(rounded, got[0].dims(), toDoubles(got[0]));
          EXPECT_TRUE(got.back() == wanted) << (onHost ? "host" : "reference");
          for (size_t i = 0; onHost && i < plain.size(); ++i)
            EXPECT_TRUE(got[i] == plain[i]) << "result " << i;
        }
        ++tried;
      }
  EXPECT_GE(tried, 20);
}

TEST(RoundedUpdate, needsWideParameters) {
  OpCase c = casesOf(kAdamW).front();
  c.attrs.set("rounded", std::string("bf16"));
  llvm::Expected<CaseGraph> g = buildCase(c, DType::F64);
  ASSERT_FALSE(bool(g));
  EXPECT_NE(llvm::toString(g.takeError()).find("attribute 'rounded': wanted bf16 or f16, of f32 parameters"), std::string::npos);
}

} // namespace
