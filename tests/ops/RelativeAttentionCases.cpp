// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

Attrs scaled(double scale) { return {{"scale", scale}}; }
Attrs filled(double scale) { return {{"scale", scale}, {"fill", -3.4028234663852886e38}}; }

/// B=2, Sq=3, Sk=4, H=2, D=3, Dv=5.
std::vector<OperandSpec> operands(bool key, bool query, OperandSpec mask = absent()) {
  return {x({2, 3, 2, 3}),
          x({2, 4, 2, 3}),
          x({2, 4, 2, 5}),
          key ? x({6, 2, 3}) : absent(),
          query ? x({6, 2, 3}) : absent(),
          std::move(mask)};
}

std::vector<OperandSpec> gradOperands(bool key, bool query, OperandSpec mask = absent()) {
  std::vector<OperandSpec> all{x({2, 3, 2, 5})};
  for (OperandSpec &spec : operands(key, query))
    all.push_back(std::move(spec));
  all.back() = x({2, 3, 2, 5});
  all.push_back(statistic(above({2, 2, 3}, 12)));
  all.push_back(std::move(mask));
  return all;
}

/// Of equal heads, so that gradients may lie in one array. B=2, S=3, H=2, D=4.
std::vector<OperandSpec> equalHeads(bool query) {
  const Dims heads{2, 3, 2, 4};
  return {x(heads), x(heads), x(heads), x(heads), x({5, 2, 4}), query ? x({5, 2, 4}) : absent(), x(heads),
          statistic(above({2, 2, 3}, 12))};
}
Attrs joined(const char *which) { return {{"scale", 0.4}, {"joined", std::string(which)}}; }

/// Keys that count for the rows of two batches; row 1 of the first batch sees none.
OperandSpec rows() {
  return given({2, 1, 3, 4}, {1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0}, DType::Bool);
}

} // namespace

void relativeAttentionCases(OpCases &cases) {
  auto add = [&](const char *what, std::vector<OperandSpec> specs, Attrs attrs) {
    cases.push_back({&kRelativeAttention, what, std::move(specs), std::move(attrs)});
  };
  add("Both", operands(true, true), scaled(0.4));
  add("KeysOnly", operands(true, false), scaled(0.5));
  add("QueriesOnly", operands(false, true), scaled(0.5));
  add("Neither", operands(false, false), scaled(0.7));
  add("Masked", operands(true, true, bools({2, 1, 1, 4})), filled(0.4));
  add("MaskedRows", operands(true, true, rows()), filled(0.4));
  add("One", {x({1, 1, 1, 1}), x({1, 1, 1, 1}), x({1, 1, 1, 1}), x({1, 1, 1}), x({1, 1, 1})}, scaled(2));
  add("NoBatch", {x({0, 3, 2, 4}), x({0, 3, 2, 4}), x({0, 3, 2, 4}), x({5, 2, 4}), x({5, 2, 4})}, scaled(2));
  add("MoreQueries", {x({1, 7, 1, 3}), x({1, 2, 1, 3}), x({1, 2, 1, 3}), x({8, 1, 3}), x({8, 1, 3})}, scaled(0.5));
  // Several tiles of distances on every device.
  add("Wider", {x({1, 37, 1, 2}), x({1, 41, 1, 2}), x({1, 41, 1, 2}), x({77, 1, 2}), x({77, 1, 2})}, scaled(0.3));
  auto addGrad = [&](const char *what, std::vector<OperandSpec> specs, Attrs attrs) {
    cases.push_back({&kRelativeAttentionGrad, what, std::move(specs), std::move(attrs)});
  };
  addGrad("Both", gradOperands(true, true), scaled(0.4));
  addGrad("KeysOnly", gradOperands(true, false), scaled(0.4));
  addGrad("QueriesOnly", gradOperands(false, true), scaled(0.4));
  addGrad("Neither", gradOperands(false, false), scaled(0.4));
  addGrad("JoinedAll", equalHeads(true), joined("qkv"));
  addGrad("JoinedKeys", equalHeads(false), joined("kv"));
  addGrad("MaskedRows", gradOperands(true, true, rows()), filled(0.4));
}

} // namespace shardc::test
