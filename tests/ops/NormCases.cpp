// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs norm(int64_t axis, double eps = 1e-5) { return {{"axis", axis}, {"eps", eps}}; }
Attrs normGrad(int64_t axis, int64_t affine) { return {{"axis", axis}, {"affine", affine}}; }
Attrs overRows(const char *body, const char *outputs, Ints dims, int64_t axis, int64_t parts = 1) {
  return {{"body", std::string(body)}, {"outputs", std::string(outputs)}, {"dims", dims}, {"axis", axis}, {"parts", parts}};
}

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

  // A norm and its sums of columns, rows that are read with strides, sums of sums, columns alone.
  cases.push_back({&kFusedRows, "Norm", {x({5, 40}), x({40})},
                   overRows("t0: f64 = x0; t1: f64 = x1; t2: f64 = 1 / sqrt(rowsum(t0 * t0) / 40 + 0.001); "
                            "y: f64 = t0 * t2 * t1; c: f64 = colsum(y); d: f64 = colsum(t0 + 1);",
                            "y,t2,c,d", {5, 40}, 1, 3)});
  cases.push_back({&kFusedRows, "Rounded", {x({4, 64}), x({4, 1})},
                   overRows("t0: bf16 = x0; t1: f32 = t0; t2: f32 = rowsum(t1) / 64; t3: f32 = rowmax(t1 - t2 * f32(x1)); "
                            "y: f32 = t1 - t3; z: bf16 = t1 * 2;",
                            "z,y,t3", {4, 64}, 1)});
  cases.push_back({&kFusedRows, "TwoDims", {x({2, 3, 4, 5}), x({2, 1, 1, 1}), x({4, 1}), x({})},
                   overRows("m: f64 = rowmax(x0); e: f64 = exp(f64(x0) - m) * f64(x1); s: f64 = rowsum(e * f64(x2)) + 9; "
                            "y: f64 = e / s + f64(x3); q: f64 = rowsum(y * y); z: f64 = y * q;",
                            "z,e,q", {2, 3, 4, 5}, 2)});
  cases.push_back({&kFusedRows, "Columns", {x({3, 2, 7})},
                   overRows("t0: f64 = x0; c: f64 = colsum(t0 * t0);", "c", {3, 2, 7}, 2, 4)});
  cases.push_back({&kFusedRows, "LongRows", {x({3, 1100}), x({1100})},
                   overRows("t0: f64 = x0; t1: f64 = rowsum(t0) / 1100; y: f64 = (t0 - t1) * f64(x1); c: f64 = colsum(y);",
                            "y,c", {3, 1100}, 1, 2)});
  cases.push_back({&kColumnSums, "Two", {statistic(x({3, 4})), statistic(x({2, 5, 7}))}, {{"dtypes", std::string("f32,bf16")}}});
  cases.push_back({&kColumnSums, "OneRow", {statistic(x({1, 40}))}, {{"dtypes", std::string("f64")}}});
}

} // namespace shardc::test
