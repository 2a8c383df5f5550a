// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs over(Ints axes, bool keep = false) { return {{"axes", axes}, {"keep_dims", int64_t(keep)}}; }
Attrs transposed(int64_t a, int64_t b) { return {{"transpose_a", a}, {"transpose_b", b}}; }
Attrs relu(int64_t a, int64_t b) {
  Attrs attrs = transposed(a, b);
  attrs.set("act", std::string("relu"));
  return attrs;
}

void products(OpCases &cases) {
  cases.push_back({&kMatMul, "Plain", {x({2, 3}), x({3, 4})}});
  cases.push_back({&kMatMul, "TransposeA", {x({3, 2}), x({3, 4})}, transposed(1, 0)});
  cases.push_back({&kMatMul, "TransposeB", {x({2, 3}), x({4, 3})}, transposed(0, 1)});
  cases.push_back({&kMatMul, "TransposeBoth", {x({3, 2}), x({4, 3})}, transposed(1, 1)});
  cases.push_back({&kMatMul, "Weight", {x({2, 5, 3}), x({3, 4})}});
  cases.push_back({&kMatMul, "WeightTransposed", {x({2, 2, 5, 3}), x({4, 3})}, transposed(0, 1)});
  cases.push_back({&kMatMul, "WeightOfTransposed", {x({2, 3, 5}), x({3, 4})}, transposed(1, 0)});
  cases.push_back({&kMatMul, "SharedLeft", {x({2, 3}), x({4, 3, 2})}});
  cases.push_back({&kMatMul, "Batch", {x({2, 3, 2, 3}), x({2, 3, 3, 4})}});
  cases.push_back({&kMatMul, "BatchTransposed", {x({2, 3, 2}), x({2, 4, 3})}, transposed(1, 1)});
  cases.push_back({&kMatMul, "BatchBroadcast", {x({2, 1, 2, 3}), x({3, 3, 2})}});
  cases.push_back({&kMatMul, "Accumulates", {x({2, 3}), x({3, 4}), x({2, 4})}});
  cases.push_back({&kMatMul, "Bias", {x({2, 3}), x({3, 4}), absent(), x({4})}});
  cases.push_back({&kMatMul, "Relu", {distinct({4, 3}), distinct({3, 5})}, relu(0, 0)});
  cases.push_back({&kMatMul, "Epilogue", {x({2, 3, 5}), x({4, 5}), x({2, 3, 4}), x({4})}, transposed(0, 1)});
  cases.push_back({&kMatMul, "EpilogueRelu", {distinct({2, 3, 5}), distinct({2, 4, 5}), x({2, 3, 4}), x({4})}, relu(0, 1)});
  cases.push_back({&kMatMul, "EpilogueOfNothing", {x({2, 0}), x({0, 3}), x({2, 3}), x({3})}, relu(0, 0)});
  cases.push_back({&kMatMul, "LargerEpilogue", {x({67, 37}), x({131, 37}), x({67, 131}), x({131})}, relu(0, 1), {0}, false, false});
  cases.push_back({&kMatMul, "WideEpilogue", {x({2, 3}), x({3, 4}), statistic(x({2, 4})), x({4})}, {{"wide", int64_t(1)}}});
  cases.push_back({&kMatMul, "Wide", {x({2, 3}), x({3, 4})}, {{"wide", int64_t(1)}}});
  cases.push_back({&kMatMul, "WideAccumulates", {x({2, 3}), x({3, 4}), statistic(x({2, 4}))}, {{"wide", int64_t(1)}}});
  cases.push_back({&kMatMul, "Tf32", {x({5, 7}), x({7, 4})}, {{"tf32", int64_t(1)}}});
  cases.push_back({&kMatMul, "One", {x({1, 1}), x({1, 1})}});
  cases.push_back({&kMatMul, "NothingInside", {x({2, 0}), x({0, 3})}});
  cases.push_back({&kMatMul, "NoRows", {x({0, 3}), x({3, 2})}});
  cases.push_back({&kMatMul, "Larger", {x({19, 37}), x({37, 23})}});
}

} // namespace

void reduceCases(OpCases &cases) {
  for (const OpDef *def : {&kReduceSum, &kReduceMax, &kReduceMin, &kReduceProd}) {
    cases.push_back({def, "Last", {distinct({3, 5})}, over({-1})});
    cases.push_back({def, "FirstKept", {distinct({3, 5})}, over({0}, true)});
    cases.push_back({def, "All", {distinct({2, 3})}, over({0, 1})});
    cases.push_back({def, "Middle", {distinct({2, 3, 4})}, over({1})});
    cases.push_back({def, "Outer", {distinct({2, 3, 4})}, over({-3, 2}, true)});
    cases.push_back({def, "Nothing", {distinct({2, 3})}, over({})});
    cases.push_back({def, "Integers", {integers({2, 3}, -4, 5)}, over({1})});
  }
  cases.push_back({&kReduceSum, "Empty", {x({2, 0})}, over({1})});
  cases.push_back({&kReduceProd, "Empty", {x({2, 0})}, over({1})});
  cases.push_back({&kReduceProd, "OneZero", {given({2, 3}, {1.5, 0, 2, 3, -1, 2})}, over({1})});
  cases.push_back({&kReduceProd, "TwoZeros", {given({2, 3}, {0, 0, 2, 3, -1, 0})}, over({1})});
  products(cases);
}

} // namespace shardc::test
