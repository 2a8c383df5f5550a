// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs ignoring(int64_t index) { return {{"ignore_index", index}}; }

} // namespace

void lossCases(OpCases &cases) {
  OperandSpec some = given({4}, {2, -100, 0, 4}, DType::I64);
  OperandSpec none = given({2}, {-100, -100}, DType::I64);
  cases.push_back({&kCrossEntropy, "All", {x({4, 5}), integers({4}, 0, 5)}, ignoring(-100)});
  cases.push_back({&kCrossEntropy, "SomeIgnored", {x({4, 5}), some}, ignoring(-100)});
  cases.push_back({&kCrossEntropy, "AllIgnored", {x({2, 5}), none}, ignoring(-100)});
  cases.push_back({&kCrossEntropy, "ZeroIgnored", {x({6, 3}), integers({6}, 0, 3)}, ignoring(0)});
  cases.push_back({&kCrossEntropy, "OneClass", {x({3, 1}), integers({3}, 0, 1)}, ignoring(-100)});
  cases.push_back({&kCrossEntropy, "NoRows", {x({0, 3}), integers({0}, 0, 3)}, ignoring(-100)});
  cases.push_back(
      {&kCrossEntropy, "ManyClasses", {x({3, 1000}), integers({3}, 0, 1000)}, ignoring(-1)});
  cases.push_back(
      {&kCrossEntropyGrad, "SomeIgnored", {statistic(x({})), x({4, 5}), some, statistic(above({4}, 2))}, ignoring(-100)});
}

} // namespace shardc::test
