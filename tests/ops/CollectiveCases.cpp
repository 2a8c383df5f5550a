// SPDX-License-Identifier: Apache-2.0
// What buckets and ranks are made of. Harnesses of one op have one rank; CollectiveKernelsTest has several.
#include "tests/ops/Cases.h"

namespace shardc::test {

void collectiveCases(OpCases &cases) {
  const Attrs alone = {{"ranks", int64_t(1)}};
  cases.push_back({&kPack,
                   "Zeros",
                   {absent(), x({2, 3}), x({5})},
                   {{"offsets", Ints{1, 8}}, {"elements", int64_t(16)}},
                   /*results=*/{}});
  cases.push_back({&kPack, "Into", {x({6}), x({2})}, {{"offsets", Ints{3}}, {"elements", int64_t(6)}}, {}});
  cases.push_back({&kRankSlice, "Alone", {x({7})}, alone, {}});
  cases.push_back({&kAllGatherStart, "Alone", {x({7}), absent()}, alone, {}});
  cases.push_back({&kAllGatherStart, "Into", {x({7}), x({7})}, alone, {}});
  cases.push_back({&kReduceScatterStart, "Alone", {x({7})}, alone, {}});
  cases.push_back({&kAllReduceStart, "Alone", {x({7})}, alone, {}});
  cases.push_back({&kCollectiveDone, "AfterStart", {x({7})}, {}, {}});
}

} // namespace shardc::test
