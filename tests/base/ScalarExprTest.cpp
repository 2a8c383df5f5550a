// SPDX-License-Identifier: Apache-2.0
#include "ir/base/ScalarExpr.h"
#include "ir/base/Half.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace shardc;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// One expression on one element of each operand, all of type T.
template <typename T>
Tensor run(llvm::StringRef text, llvm::ArrayRef<T> values, DType dtype, DType result) {
  llvm::SmallVector<DType> dtypes(values.size(), dtype);
  auto program = parseScalarExpr(text, dtypes, result);
  EXPECT_TRUE(bool(program)) << text.str();
  if (!program) {
    ADD_FAILURE() << llvm::toString(program.takeError());
    return Tensor::splat(result, {}, 0);
  }
  std::vector<Tensor> tensors;
  for (T value : values)
    tensors.push_back(Tensor::of<T>(dtype, {}, value));
  llvm::SmallVector<const Tensor *> operands;
  for (Tensor &tensor : tensors)
    operands.push_back(&tensor);
  return evaluate(*program, operands, {});
}

float f32(llvm::StringRef text, llvm::ArrayRef<float> values = {}) {
  return *run<float>(text, values, DType::F32, DType::F32).data<float>();
}
double f64(llvm::StringRef text, llvm::ArrayRef<double> values = {}) {
  return *run<double>(text, values, DType::F64, DType::F64).data<double>();
}
int64_t i64(llvm::StringRef text, llvm::ArrayRef<int64_t> values = {}) {
  return *run<int64_t>(text, values, DType::I64, DType::I64).data<int64_t>();
}
int32_t i32(llvm::StringRef text, llvm::ArrayRef<int32_t> values = {}) {
  return *run<int32_t>(text, values, DType::I32, DType::I32).data<int32_t>();
}
bool test(llvm::StringRef text, llvm::ArrayRef<float> values = {}) {
  return *run<float>(text, values, DType::F32, DType::Bool).data<uint8_t>();
}
/// The error of an expression over a, b: f32.
std::string error(llvm::StringRef text, DType a = DType::F32, DType b = DType::F32,
                  DType result = DType::F32) {
  auto program = parseScalarExpr(text, {a, b}, result);
  return program ? "" : llvm::toString(program.takeError());
}

TEST(ScalarExpr, precedenceIsThatOfC) {
  EXPECT_EQ(f32("1 + 2 * 3"), 7);
  EXPECT_EQ(f32("(1 + 2) * 3"), 9);
  EXPECT_EQ(f32("8 - 4 - 2"), 2);
  EXPECT_EQ(f32("16 / 4 / 2"), 2);
  EXPECT_EQ(f32("-a * b", {2, 3}), -6);
  EXPECT_EQ(f32("- -a", {2}), 2);
  EXPECT_EQ(f32("a < b ? 1 : a == b ? 2 : 3", {4, 4}), 2);
  EXPECT_EQ(f32("a < b || a > 3 && b > 9 ? 1 : 0", {4, 4}), 0);
  EXPECT_EQ(f32("!(a < b) ? 5 : 6", {1, 2}), 6);
  EXPECT_EQ(i64("a % b * 2", {7, 4}), 6);
  EXPECT_EQ(f32("1e-2 + 2.5E1 + .5"), 0.01f + 25.0f + 0.5f);
}

TEST(ScalarExpr, float32IsComputedByTheFloatFunctionsOfLibm) {
  for (float x : {0.1f, 0.7f, 1.3f, 5.9f, 80.25f}) {
    EXPECT_EQ(f32("log(a)", {x}), logf(x));
    EXPECT_EQ(f32("exp(a)", {x}), expf(x));
    EXPECT_EQ(f32("pow(a, b)", {x, 1.7f}), powf(x, 1.7f));
    EXPECT_EQ(f32("tanh(a)", {x}), tanhf(x));
    EXPECT_EQ(f32("erf(a)", {x}), erff(x));
    EXPECT_EQ(f32("sin(a) + cos(a)", {x}), sinf(x) + cosf(x));
    EXPECT_EQ(f32("sqrt(a)", {x}), sqrtf(x));
    EXPECT_EQ(f64("log(a)", {double(x)}), log(double(x)));
  }
  EXPECT_EQ(f32("log(a / 8) / 2.7725887 * 8", {20}), logf(20.f / 8) / 2.7725887f * 8);
}

TEST(ScalarExpr, roundingIsToNearestEven) {
  EXPECT_EQ(f32("round(a)", {0.5f}), 0);
  EXPECT_EQ(f32("round(a)", {1.5f}), 2);
  EXPECT_EQ(f32("round(a)", {-2.5f}), -2);
  EXPECT_EQ(f32("ceil(a) * 10 + floor(a)", {1.2f}), 21);
}

TEST(ScalarExpr, nanPassesThroughMaxMinAndSign) {
  float nan = NAN;
  EXPECT_TRUE(std::isnan(f32("max(a, b)", {nan, 1})));
  EXPECT_TRUE(std::isnan(f32("max(a, b)", {1, nan})));
  EXPECT_TRUE(std::isnan(f32("min(a, b)", {nan, 1})));
  EXPECT_TRUE(std::isnan(f32("min(a, b)", {1, nan})));
  EXPECT_TRUE(std::isnan(f32("sign(a)", {nan})));
  EXPECT_TRUE(test("isnan(a)", {nan}));
  EXPECT_TRUE(test("a != a", {nan}));
  EXPECT_TRUE(test("isinf(a) && isinf(-b)", {kInf, kInf}));
  EXPECT_FALSE(test("a < b", {nan, 1}));
  EXPECT_EQ(f32("-inf"), -kInf);
  EXPECT_TRUE(std::isnan(f32("nan")));
}

TEST(ScalarExpr, integersWrapAroundAndNeverTrap) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(i64("a + b", {std::numeric_limits<int64_t>::max(), 1}), kLeast);
  EXPECT_EQ(i64("a / b", {kLeast, -1}), kLeast);
  EXPECT_EQ(i64("a / b", {7, 0}), 0);
  EXPECT_EQ(i64("a / b", {-7, 2}), -3);
  EXPECT_EQ(i64("abs(a)", {kLeast}), kLeast);
  EXPECT_EQ(i64("-a", {kLeast}), kLeast);
  EXPECT_EQ(i32("a * b", {1 << 20, 1 << 20}), 0);
  EXPECT_EQ(i64("sign(a) + 10 * sign(b)", {-5, 9}), 9);
}

TEST(ScalarExpr, modFollowsOnnx) {
  EXPECT_EQ(i64("mod(a, b)", {-4, 3}), 2); // sign of the divisor
  EXPECT_EQ(i64("mod(a, b)", {4, -3}), -2);
  EXPECT_EQ(i64("mod(a, b)", {5, 8}), 5);
  EXPECT_EQ(i64("mod(a, b)", {5, 0}), 0);
  EXPECT_EQ(f32("mod(a, b)", {-4.3f, 2.1f}), fmodf(-4.3f, 2.1f));
}

TEST(ScalarExpr, powerOfIntegersIsExact) {
  EXPECT_EQ(i64("pow(a, b)", {3, 39}), 4052555153018976267); // beyond 2^53
  EXPECT_EQ(i64("pow(a, b)", {-2, 3}), -8);
  EXPECT_EQ(i64("pow(a, b)", {2, -1}), 0);
  EXPECT_EQ(i64("pow(a, b)", {-1, -3}), -1);
  EXPECT_EQ(i64("pow(a, b)", {0, 0}), 1);
}

TEST(ScalarExpr, conversionsTruncateSaturateAndRound) {
  EXPECT_EQ(*run<float>("i64(a)", {-2.9f}, DType::F32, DType::I64).data<int64_t>(), -2);
  EXPECT_EQ(*run<float>("a", {1e30f}, DType::F32, DType::I32).data<int32_t>(), INT32_MAX);
  EXPECT_EQ(*run<float>("a", {-kInf}, DType::F32, DType::I64).data<int64_t>(), INT64_MIN);
  EXPECT_EQ(*run<float>("a", {NAN}, DType::F32, DType::I64).data<int64_t>(), 0);
  EXPECT_EQ(*run<int64_t>("a", {int64_t(1) << 32 | 5}, DType::I64, DType::I32).data<int32_t>(), 5);
  EXPECT_EQ(*run<float>("a", {0.25f}, DType::F32, DType::Bool).data<uint8_t>(), 1);
  EXPECT_EQ(f32("f32(f16(a))", {1 / 3.f}), halfToFloat(floatToHalf(1 / 3.f)));
  EXPECT_EQ(f32("bf16(a) * 1", {1 / 3.f}), bfloatToFloat(floatToBFloat(1 / 3.f)));
  EXPECT_EQ(f32("f32(i32(a)) / 2", {3.7f}), 1.5f);
}

TEST(ScalarExpr, sixteenBitFloatsComputeInFloat) {
  // 1 + 2^-11 is not an f16, so rounding between the additions would lose it twice.
  uint16_t one = floatToHalf(1), tiny = floatToHalf(0x1p-11f);
  Tensor y = run<uint16_t>("a + b + b", {one, tiny}, DType::F16, DType::F16);
  EXPECT_EQ(halfToFloat(*y.data<uint16_t>()), 1 + 0x1p-10f);
}

TEST(ScalarExpr, sharedSubexpressionsAreComputedOnce) {
  auto program = parseScalarExpr("exp(a * 2) + exp(a * 2)", {DType::F32}, DType::F32);
  ASSERT_TRUE(bool(program));
  EXPECT_EQ(program->code.size(), 5u); // a, 2, *, exp, +
}

TEST(ScalarExpr, programHasLinesAndOutputs) {
  auto program = parseScalarProgram("t0 : f32 = x0 * x1; t1 : bool = t0 > 1;\n t2 : i64 = i64(t0)",
                                    {"x0", "x1"}, {DType::F32, DType::F32}, {"t2", "t1"});
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  ASSERT_EQ(program->outputs.size(), 2u);
  EXPECT_EQ(program->code[program->outputs[0]].dtype, DType::I64);
  EXPECT_EQ(program->code[program->outputs[1]].dtype, DType::Bool);
  Tensor x0 = Tensor::of<float>(DType::F32, {3}, {1, 2, 3}),
         x1 = Tensor::splat(DType::F32, {}, 2.5);
  EXPECT_EQ(evaluate(*program, {&x0, &x1}, {3}), Tensor::ofInts({2, 5, 7}));
}

TEST(ScalarExpr, aLineRoundsToItsType) {
  auto program =
      parseScalarProgram("t0 : bf16 = x0; t1 : f32 = t0 * 3", {"x0"}, {DType::F32}, {"t1"});
  ASSERT_TRUE(bool(program));
  Tensor x = Tensor::splat(DType::F32, {}, 1.01);
  EXPECT_EQ(*evaluate(*program, {&x}, {}).data<float>(), bfloatToFloat(floatToBFloat(1.01f)) * 3);
}

TEST(ScalarExpr, operandsBroadcast) {
  auto program = parseScalarExpr("a * 10 + b", {DType::I64, DType::I64}, DType::I64);
  ASSERT_TRUE(bool(program));
  Tensor a = Tensor::ofInts({1, 2}).reshaped({2, 1}), b = Tensor::ofInts({3, 4, 5});
  EXPECT_EQ(evaluate(*program, {&a, &b}, {2, 3}),
            Tensor::ofInts({13, 14, 15, 23, 24, 25}).reshaped({2, 3}));
  EXPECT_EQ(evaluate(*program, {&a, &b}, {0, 2, 3}).numElements(), 0);
  // More than one block.
  std::vector<int64_t> many(1000);
  for (int i = 0; i < 1000; ++i)
    many[i] = i;
  Tensor long_ = Tensor::ofInts(many).reshaped({1, 1000});
  Tensor sum = evaluate(*program, {&a, &long_}, {2, 1000});
  EXPECT_EQ(sum.asInt(999), 10 + 999);
  EXPECT_EQ(sum.asInt(1000 + 700), 20 + 700);
}

TEST(ScalarExpr, namedNumbersAreConstants) {
  auto program = parseScalarExpr("a * slope", {DType::F32}, DType::F32, {{"slope", 0.25}});
  ASSERT_TRUE(bool(program));
  Tensor a = Tensor::splat(DType::F32, {}, 8);
  EXPECT_EQ(*evaluate(*program, {&a}, {}).data<float>(), 2);
}

TEST(ScalarExpr, keepHasItsConstants) {
  auto program = parseScalarExpr("a * keep(p, id, batch_major)", {DType::F32}, DType::F32,
                                 {{"p", 0.1}, {"id", 7}, {"batch_major", 1}});
  ASSERT_TRUE(bool(program));
  const ScalarInstr &keep = program->code[1];
  EXPECT_EQ(keep.code, ScalarCode::Keep);
  EXPECT_EQ(keep.dtype, DType::F32);
  EXPECT_EQ(keep.number, 0.1);
  EXPECT_EQ(keep.input, 7);
  EXPECT_TRUE(keep.batchMajor);
}

TEST(ScalarExpr, mistakesSayTheColumn) {
  EXPECT_EQ(error("a +"), "column 4: got the end, wanted a value");
  EXPECT_EQ(error("a ? 1 : 2"), "column 3: condition: got a number, wanted a truth value");
  EXPECT_EQ(error("a + b", DType::F32, DType::F64),
            "column 3: types differ: got f32 and f64, wanted equal ones");
  EXPECT_EQ(error("a * (a > b)"), "column 3: types differ: got f32 and bool, wanted equal ones");
  EXPECT_EQ(error("a + 0.5", DType::I64, DType::I64, DType::I64),
            "column 5: got a fraction, wanted an integer, for it meets i64");
  EXPECT_EQ(error("exp(a)", DType::I64, DType::I64, DType::I64),
            "column 1: got i64, wanted a float type");
  EXPECT_EQ(error("a $ b"), "column 3: got '$', wanted the end");
  EXPECT_EQ(error("gelu(a)"), "column 1: got 'gelu', wanted a function");
  EXPECT_EQ(error("pow(a)"), "column 1: pow: got 1 arguments, wanted 2");
  EXPECT_EQ(error("x9"), "column 1: got 'x9', wanted an input, an earlier line or a number");
  EXPECT_EQ(error("keep(1, 0, 0)"), "column 1: keep: got p outside [0, 1), wanted one inside");
  EXPECT_EQ(error("1..2"), "column 1: got '1..2', wanted a number");
}

TEST(ScalarExpr, programMistakes) {
  auto wrong = [](llvm::StringRef text, llvm::StringRef output = "t0") {
    auto program = parseScalarProgram(text, {"x0"}, {DType::F32}, {output});
    return program ? "" : llvm::toString(program.takeError());
  };
  EXPECT_EQ(wrong("t0 : f32 = x0", "t1"),
            "column 14: output 't1': got no line of that name, wanted one");
  EXPECT_EQ(wrong("t0 : f33 = x0"), "column 6: got 'f33', wanted an element type such as f32");
  EXPECT_EQ(wrong("t0 : f32 = x0 t1"), "column 15: got 't', wanted ';'");
  EXPECT_EQ(wrong("t0 : f32 = x0; t0 : f32 = x0"),
            "column 16: name 't0': got it twice, wanted distinct ones");
  EXPECT_EQ(wrong("t0 : f32 = t0"),
            "column 12: got 't0', wanted an input, an earlier line or a number");
}

TEST(ScalarExpr, hostileTextIsRefusedNotFollowed) {
  EXPECT_NE(error(std::string(100000, '(')), "");
  EXPECT_NE(error(std::string(100000, '-') + "a"), "");
  EXPECT_NE(error(std::string(100000, '!')), "");
  std::string sum = "a";
  for (int i = 0; i < 50000; ++i)
    sum += "+a";
  EXPECT_EQ(error(sum).substr(0, 6), "column");
}

// What parses can be run: the parser makes no code that the evaluation does not know.
TEST(ScalarExpr, randomTextIsRefusedOrRuns) {
  static constexpr llvm::StringRef kTokens[] = {
      "a",    "b",   "c",     "+",      "-",    "*",   "/",    "%",     "(",
      ")",    "?",   ":",     "<",      "<=",   "==",  "!=",   "&&",    "||",
      "!",    "1",   "2.5",   "pow(",   "max(", ",",   "exp(", "i64(",  "f16(",
      "f64(", "u8(", "bool(", "isnan(", "inf",  "nan", "abs(", "sign(", "round("};
  constexpr DType kTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16,
                              DType::I32, DType::I64, DType::U8,  DType::Bool};
  uint32_t state = 1;
  auto draw = [&](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
  };
  unsigned ran = 0;
  for (unsigned round = 0; round < 60000; ++round) {
    std::string text;
    for (unsigned i = 0, n = 1 + draw(9); i < n; ++i)
      text += kTokens[draw(std::size(kTokens))];
    text.append(llvm::StringRef(text).count('(') -
                    std::min(llvm::StringRef(text).count('('), llvm::StringRef(text).count(')')),
                ')');
    DType types[3] = {kTypes[draw(8)], kTypes[draw(8)], kTypes[draw(8)]}, result = kTypes[draw(8)];
    auto program = parseScalarExpr(text, types, result);
    if (!program) {
      EXPECT_EQ(llvm::toString(program.takeError()).substr(0, 7), "column ");
      continue;
    }
    Tensor a = Tensor::splat(types[0], {2}, 3), b = Tensor::splat(types[1], {1}, -1),
           c = Tensor::splat(types[2], {2}, 0);
    Tensor y = evaluate(*program, {&a, &b, &c}, {2});
    EXPECT_EQ(y.dtype(), result) << text;
    ++ran;
  }
  EXPECT_GT(ran, 1000u);
}

} // namespace
