// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/Cases.h"

namespace shardc::test {
namespace {

/// Shapes that every operator of two operands meets.
void binary(OpCases &cases, const OpDef &def, OperandSpec (*a)(Dims), OperandSpec (*b)(Dims)) {
  cases.push_back({&def, "Same", {a({2, 3}), b({2, 3})}});
  cases.push_back({&def, "BroadcastRight", {a({2, 3, 4}), b({4})}});
  cases.push_back({&def, "BroadcastLeft", {a({3, 1}), b({2, 3, 4})}});
  cases.push_back({&def, "BroadcastBoth", {a({2, 1, 3}), b({4, 1})}});
  cases.push_back({&def, "Scalars", {a({}), b({})}});
  cases.push_back({&def, "One", {a({1, 1}), b({1})}});
  cases.push_back({&def, "Empty", {a({0, 3}), b({1, 3})}});
}

void unary(OpCases &cases, const OpDef &def, OperandSpec (*a)(Dims)) {
  cases.push_back({&def, "Matrix", {a({3, 7})}});
  cases.push_back({&def, "Scalar", {a({})}});
  cases.push_back({&def, "Empty", {a({2, 0})}});
}

void comparison(OpCases &cases, const OpDef &def) {
  auto ints = [](Dims dims) { return integers(dims, 0, 3); };
  cases.push_back({&def, "Integers", {ints({3, 5}), ints({5})}});
  cases.push_back({&def, "Floats", {distinct({3, 5}), distinct({3, 1})}});
}

} // namespace

void pointwiseCases(OpCases &cases) {
  binary(cases, kAdd, x, x);
  binary(cases, kSub, x, x);
  binary(cases, kMul, x, x);
  binary(cases, kDiv, x, positive);
  binary(cases, kPow, positive, x);
  binary(cases, kMax, distinct, x);
  binary(cases, kMin, distinct, x);
  cases.push_back({&kMod, "Floats", {distinct({3, 4}), given({4}, {1.5, 1.5, -1.7, 2.3})}});
  cases.push_back(
      {&kMod, "Integers", {integers({3, 4}, -9, 9), given({4}, {2, -3, 5, 7}, DType::I64)}});
  for (double exponent : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -0.5, 2.5})
    cases.push_back({&kPow,
                     "Constant" + std::to_string(int(exponent * 10 + 100)),
                     {positive({2, 3}), number(exponent)}});
  cases.push_back({&kPow, "NegativeBaseSquared", {x({2, 3}), number(2)}});
  cases.push_back({&kPow, "Integers", {integers({4}, -3, 4), integers({4}, 0, 5)}});
  cases.push_back({&kMax, "ClipBelow", {distinct({4, 5}), number(0.3)}});
  cases.push_back({&kMin, "ClipAbove", {distinct({4, 5}), number(0.3)}});
  cases.push_back(
      {&kAdd, "Integers", {integers({4}, -9, 9, DType::I32), integers({4}, -9, 9, DType::I32)}});

  unary(cases, kNeg, x);
  unary(cases, kAbs, distinct);
  unary(cases, kSign, distinct);
  unary(cases, kReciprocal, positive);
  unary(cases, kCeil, distinct);
  unary(cases, kFloor, distinct);
  cases.push_back({&kRound, "Away", {given({4}, {0.3, -1.7, 2.2, 5.9})}});
  unary(cases, kExp, x);
  unary(cases, kLog, positive);
  unary(cases, kSqrt, positive);
  unary(cases, kRsqrt, positive);
  unary(cases, kSin, x);
  unary(cases, kCos, x);
  unary(cases, kTanh, x);
  unary(cases, kSigmoid, x);
  unary(cases, kSoftplus, distinct);
  unary(cases, kErf, x);
  unary(cases, kRelu, distinct);
  unary(cases, kGelu, x);
  unary(cases, kGeluTanh, x);
  unary(cases, kSilu, x);
  cases.push_back({&kSigmoid, "Large", {given({4}, {-40, 40, -700, 700})}});
  cases.push_back({&kSilu, "Large", {given({4}, {-40, 40, -700, 700})}});
  cases.push_back({&kSoftplus, "Large", {given({4}, {-40, 40, -700, 700})}});
  cases.push_back({&kCast, "FloatToFloat", {x({3})}, {{"to", std::string("f64")}}});
  cases.push_back({&kCast, "FloatToInt", {distinct({9})}, {{"to", std::string("i64")}}});
  cases.push_back({&kCast, "IntToFloat", {integers({9}, -5, 5)}, {{"to", std::string("f32")}}});
  cases.push_back({&kCast, "BoolToInt", {bools({9})}, {{"to", std::string("i32")}}});

  for (const OpDef *def : {&kEqual, &kLess, &kLessEqual, &kGreater, &kGreaterEqual})
    comparison(cases, *def);
  for (const OpDef *def : {&kAnd, &kOr, &kXor})
    cases.push_back({def, "Broadcast", {bools({3, 4}), bools({4})}});
  cases.push_back({&kNot, "Matrix", {bools({3, 4})}});
  cases.push_back({&kIsNan, "Some", {given({3}, {1, __builtin_nan(""), __builtin_inf()})}});
  cases.push_back({&kIsInf, "Some", {given({3}, {1, __builtin_nan(""), -__builtin_inf()})}});
  cases.push_back({&kWhere, "Same", {bools({3, 4}), x({3, 4}), x({3, 4})}});
  cases.push_back({&kWhere, "Broadcast", {bools({3, 1}), x({4}), x({2, 1, 1})}});
  cases.push_back({&kWhere, "Integers", {bools({5}), integers({5}, 0, 9), integers({}, 0, 9)}});
  cases.push_back({&kFused,
                   "TwoResults",
                   {x({3, 4}), x({4}), bools({3, 1})},
                   {{"body", std::string("t0 : f64 = x0 * x1; t1 : f64 = x2 ? tanh(t0) : 0.5; "
                                         "t2 : bool = t1 > 0")},
                    {"outputs", std::string("t1,t2")}}});
}

} // namespace shardc::test
