// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs norm(int64_t axis, double eps = 1e-5) { return {{"axis", axis}, {"eps", eps}}; }
Attrs normGrad(int64_t axis, int64_t affine) { return {{"axis", axis}, {"affine", affine}}; }

} // namespace

void normCases(OpCases &cases) {
  cases.push_back({&kSoftmax, "Matrix", {x({3, 5})}});
  cases.push_back({&kSoftmax, "One", {x({4, 1})}});
  cases.push_back({&kSoftmax, "Heads", {x({2, 2, 3, 4})}});
  cases.push_back({&kSoftmax, "Empty", {x({0, 4})}});
  cases.push_back({&kSoftmax, "NothingInARow", {x({2, 0})}});
  cases.push_back({&kSoftmax,
                   "MaskedRow",
                   {given({2, 3}, {-3e38, -3e38, -3e38, -3e38, 1, 2})},
                   {},
                   {0},
                   /*random=*/false,
                   /*smooth=*/false});
  cases.push_back({&kSoftmaxGrad, "Matrix", {x({3, 5}), x({3, 5})}});
  cases.push_back({&kLogSoftmax, "Matrix", {x({3, 5})}});
  cases.push_back({&kLogSoftmax, "Large", {given({1, 3}, {1000, 1001, 999})}});
  cases.push_back({&kLayerNorm, "Affine", {x({3, 7}), x({7}), x({7})}, norm(-1)});
  cases.push_back({&kLayerNorm, "Plain", {x({2, 3, 4})}, norm(-1)});
  cases.push_back({&kLayerNorm, "NoBias", {x({2, 3, 4}), x({4})}, norm(2)});
  cases.push_back({&kLayerNorm, "TwoDims", {x({2, 3, 4}), x({3, 4}), x({3, 4})}, norm(1, 0.1)});
  cases.push_back({&kLayerNorm, "Statistics", {x({2, 3, 4}), x({4}), x({4})}, norm(-1), {0, 1, 2}});
  cases.push_back({&kLayerNorm, "OnlyMean", {x({2, 3, 4})}, norm(1), {1}});
  cases.push_back({&kLayerNorm, "OnlyRstd", {x({2, 3, 4})}, norm(1), {2}});
  cases.push_back({&kRmsNorm, "Statistics", {x({2, 3, 4}), x({4})}, norm(-1), {0, 1}});
  cases.push_back({&kRmsNorm, "OnlyRstd", {x({2, 3, 4}), x({4})}, norm(-1), {1}});
  cases.push_back({&kLayerNorm, "NoRows", {x({0, 4}), x({4}), x({4})}, norm(-1)});
  cases.push_back({&kLayerNormGrad,
                   "Affine",
                   {x({3, 7}), x({3, 7}), statistic(x({3})), statistic(positive({3})), x({7})},
                   normGrad(-1, 1)});
  cases.push_back(
      {&kLayerNormGrad, "Plain", {x({3, 7}), x({3, 7}), statistic(x({3})), statistic(positive({3}))}, normGrad(1, 0)});
  cases.push_back({&kRmsNorm, "Matrix", {x({3, 7}), x({7})}, norm(-1, 1e-6)});
  cases.push_back({&kRmsNorm, "TwoDims", {x({2, 3, 4}), x({3, 4})}, norm(-2)});
  cases.push_back({&kRmsNorm, "One", {x({3, 1}), x({1})}, norm(1, 0.5)});
  cases.push_back(
      {&kRmsNormGrad, "Affine", {x({3, 7}), x({3, 7}), statistic(positive({3})), x({7})}, normGrad(-1, 1)});
  cases.push_back(
      {&kRmsNormGrad, "Plain", {x({3, 7}), x({3, 7}), statistic(positive({3})), x({7})}, normGrad(-1, 0)});
}

} // namespace shardc::test
