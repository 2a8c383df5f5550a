// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs scaled(double scale) { return {{"scale", scale}}; }
Attrs grad(int64_t bias) { return {{"scale", 0.5}, {"bias_grad", bias}}; }

/// q, k, v of B=2, Sq=3, Sk=4, H=2, D=3, Dv=5.
std::vector<OperandSpec> qkv() { return {x({2, 3, 2, 3}), x({2, 4, 2, 3}), x({2, 4, 2, 5})}; }
std::vector<OperandSpec> withBias(OperandSpec bias) {
  std::vector<OperandSpec> operands = qkv();
  operands.push_back(std::move(bias));
  return operands;
}
std::vector<OperandSpec> gradOperands(OperandSpec bias) {
  return {x({2, 3, 2, 5}), x({2, 3, 2, 3}),     x({2, 4, 2, 3}), x({2, 4, 2, 5}),
          x({2, 3, 2, 5}), statistic(above({2, 2, 3}, 8)), std::move(bias)};
}

/// For gradients as one array: v is like k.
std::vector<OperandSpec> equalHeads(int64_t keys) {
  OperandSpec q = x({2, 3, 2, 8}), k = x({2, keys, 2, 8});
  return {q, q, k, k, q, statistic(above({2, 2, 3}, 8)), x({2, 3, keys})};
}
Attrs joined(const char *which, int64_t bias) {
  Attrs attrs = grad(bias);
  attrs.set("joined", std::string(which));
  return attrs;
}

std::vector<OperandSpec> masked(std::vector<OperandSpec> operands, OperandSpec mask) {
  operands.push_back(std::move(mask));
  return operands;
}
Attrs filled(Attrs attrs) {
  attrs.set("fill", -3.4028234663852886e38);
  return attrs;
}
/// Keys that count for the rows of two batches; row 1 of the first batch sees none.
OperandSpec rows() {
  return given({2, 1, 3, 4},
               {1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0},
               DType::Bool);
}

} // namespace

void attentionCases(OpCases &cases) {
  cases.push_back({&kAttention, "Plain", qkv(), scaled(0.7)});
  cases.push_back({&kAttention, "FullBias", withBias(x({2, 2, 3, 4})), scaled(1)});
  cases.push_back({&kAttention, "SharedBias", withBias(x({1, 2, 3, 4})), scaled(1)});
  cases.push_back({&kAttention, "KeyBias", withBias(x({2, 1, 1, 4})), scaled(0.5)});
  cases.push_back({&kAttention, "LowRankBias", withBias(x({3, 4})), scaled(0.5)});
  cases.push_back({&kAttention, "ScalarBias", withBias(x({})), scaled(0.5)});
  OperandSpec mask =
      given({1, 1, 3, 4}, {0, -3e38, -3e38, -3e38, 0, 0, -3e38, -3e38, 0, 0, 0, -3e38});
  mask.constant = true;
  cases.push_back({&kAttention, "Causal", withBias(mask), scaled(0.5)});
  cases.push_back({&kAttention, "Masked", masked(withBias(absent()), bools({2, 1, 1, 4})),
                   filled(scaled(0.5))});
  cases.push_back(
      {&kAttention, "MaskedRows", masked(withBias(x({1, 2, 3, 4})), rows()), filled(scaled(0.5))});
  cases.push_back(
      {&kAttention, "One", {x({1, 1, 1, 1}), x({1, 1, 1, 1}), x({1, 1, 1, 1})}, scaled(2)});
  cases.push_back(
      {&kAttention, "NoBatch", {x({0, 3, 2, 4}), x({0, 3, 2, 4}), x({0, 3, 2, 4})}, scaled(2)});
  cases.push_back({&kAttention,
                   "Wider",
                   {x({1, 9, 2, 8}), x({1, 17, 2, 8}), x({1, 17, 2, 8}), x({1, 2, 9, 17})},
                   scaled(0.35)});
  cases.push_back({&kAttentionGrad, "Plain", gradOperands(absent()), grad(0)});
  cases.push_back({&kAttentionGrad, "JoinedKeys", equalHeads(4), joined("kv", 1), {0, 1, 2}});
  cases.push_back({&kAttentionGrad, "JoinedAll", equalHeads(3), joined("qkv", 0)});
  cases.push_back({&kAttentionGrad, "JoinedAllBias", equalHeads(3), joined("qkv", 1), {0, 1}});
  cases.push_back({&kAttentionGrad, "FixedBias", gradOperands(x({2, 1, 1, 4})), grad(0)});
  cases.push_back({&kAttentionGrad, "SharedBias", gradOperands(x({1, 2, 3, 4})), grad(1)});
  cases.push_back({&kAttentionGrad, "KeyBias", gradOperands(x({2, 1, 1, 4})), grad(1)});
  cases.push_back({&kAttentionGrad, "LowRankBias", gradOperands(x({3, 4})), grad(1)});
  cases.push_back({&kAttentionGrad, "Masked", masked(gradOperands(absent()), bools({2, 1, 1, 4})),
                   filled(grad(0))});
  cases.push_back({&kAttentionGrad, "MaskedRows", masked(gradOperands(x({1, 2, 3, 4})), rows()),
                   filled(grad(1))});
  Attrs adds = filled(grad(1));
  adds.set("mask_adds", int64_t(1));
  OperandSpec fillOfAll = given({2, 2, 3}, std::vector<double>(12, -3.4028234663852886e38));
  std::vector<OperandSpec> operands = masked(gradOperands(x({1, 2, 3, 4})), rows());
  cases.push_back({&kAttentionGrad, "AddedMask", operands, adds});
  operands[5] = statistic(fillOfAll);
  cases.push_back({&kAttentionGrad, "AddedMaskOfAll", operands, adds});
}

} // namespace shardc::test
