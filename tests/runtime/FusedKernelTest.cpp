// SPDX-License-Identifier: Apache-2.0
// Fused scalar programs over tiles: every function, every type, broadcast and strided operands.
#include "ir/base/Philox.h"
#include "ir/base/ScalarExpr.h"
#include "ir/plan/Scalars.h"
#include "tests/runtime/KernelHarness.h"
#include "gtest/gtest.h"
#include <cmath>

namespace shardc::host {
namespace {

constexpr DType kF = DType::F64;

OpCase fused(std::vector<Tensor> in, std::string body, std::string outputs,
             double tolerance = 1e-5) {
  return {kFused, std::move(in), {{"body", body}, {"outputs", outputs}}, tolerance};
}

/// The line for both float types: `T` stands for the type of x0.
void expectBoth(std::vector<Tensor> in, llvm::StringRef expr, double tolerance = 1e-5) {
  for (DType dtype : {DType::F32, DType::F64}) {
    std::vector<Tensor> own;
    for (const Tensor &t : in)
      own.push_back(asFloats(t, dtype));
    std::string body = ("y:" + toString(dtype) + " = " + expr + ";").str();
    // The reference runs in the operands' own type here, in single steps of libm.
    Graph graph;
    KernelRun run("fused");
    llvm::SmallVector<DType> types;
    llvm::SmallVector<std::string> names;
    llvm::SmallVector<const Tensor *> args;
    for (size_t i = 0; i < own.size(); ++i) {
      types.push_back(own[i].dtype());
      names.push_back(("x" + llvm::Twine(i)).str());
      args.push_back(&own[i]);
      run.in(own[i]);
    }
    llvm::SmallVector<llvm::StringRef> refs(names.begin(), names.end());
    auto program = parseScalarProgram(body, refs, types, {"y"});
    ASSERT_TRUE(bool(program)) << messageOf(program.takeError());
    run.attr("body", body).attr("outputs", std::string("y")).out(dtype, own[0].dims());
    ASSERT_EQ(messageOf(run.bindAndRun()), "") << body;
    expectNear(run.result(), evaluate(*program, args, own[0].dims()),
               dtype == DType::F64 ? 1e-15 : tolerance, body);
  }
}

TEST(Fused, FunctionsOfFloats) {
  Tensor x = noise(kF, {3, 1111}, 1, -6, 6), y = noise(kF, {3, 1111}, 2, -6, 6);
  Tensor positive = noise(kF, {3, 1111}, 3, 0, 9);
  for (const char *expr : {"x0 + x1",
                           "x0 - x1",
                           "x0 * x1",
                           "x0 / x1",
                           "x0 % x1",
                           "-x0",
                           "abs(x0)",
                           "max(x0, x1)",
                           "min(x0, x1)",
                           "sign(x0)",
                           "exp(x0)",
                           "sin(x0)",
                           "cos(x0)",
                           "tanh(x0)",
                           "erf(x0)",
                           "ceil(x0)",
                           "floor(x0)",
                           "round(x0)",
                           "pow(x0, 2)",
                           "pow(x0, 3)",
                           "pow(x0, -1)",
                           "x0 > x1 ? x0 : 3 * x1",
                           "x0 == x0 && x1 < 2 ? 1 : 0"})
    expectBoth({x, y}, expr, 3e-7);
  for (const char *expr : {"log(x0)", "sqrt(x0)", "pow(x0, 0.5)", "pow(x0, x1)", "pow(x0, 1.7)"})
    expectBoth({positive, y}, expr, 3e-6);
}

TEST(Fused, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Tensor x = Tensor::of<double>(kF, {9}, {inf, -inf, nan, 0.0, -0.0, 88.9, -104.5, 1e30, -1e30});
  Tensor y = Tensor::of<double>(kF, {9}, {nan, 1, 2, inf, 0, nan, 1, 1, 1});
  for (const char *expr : {"exp(x0)", "log(x0)", "tanh(x0)", "erf(x0)", "sqrt(x0)", "max(x0, x1)",
                           "min(x0, x1)", "sign(x0)", "isnan(x0) ? 1 : 0", "isinf(x0) ? 1 : 0"})
    expectBoth({x, y}, expr, 3e-7);
}

TEST(Fused, Integers) {
  for (DType dtype : {DType::I32, DType::I64, DType::U8}) {
    double low = dtype == DType::U8 ? 0 : -40;
    Tensor a = noise(dtype, {1500}, 1, low, 40), b = noise(dtype, {1500}, 2, low / 10, 4);
    std::string t = toString(dtype).str();
    for (const char *expr :
         {"x0 + x1", "x0 - x1", "x0 * x1", "x0 / x1", "x0 % x1", "max(x0, x1)", "min(x0, x1)",
          "x0 > x1 ? x0 : x1", "abs(x0)", "sign(x0)", "pow(x0, x1)"})
      expectReference(fused({a, b}, "y:" + t + " = " + expr + ";", "y"));
    expectReference(
        fused({a}, "y:f32 = f32(x0) / 3; z:bool = x0 >= 2; w:i64 = i64(x0);", "y,z,w", 1e-6));
  }
}

TEST(Fused, ConversionsSaturate) {
  Tensor x = Tensor::of<float>(DType::F32, {6}, {1e30f, -1e30f, NAN, 2.9f, -2.9f, 2147483648.0f});
  expectReference(
      fused({x}, "a:i32 = i32(x0); b:i64 = i64(x0); c:u8 = u8(x0); d:bool = bool(x0);", "a,b,c,d"));
}

TEST(Fused, Logic) {
  Tensor a = noise(DType::Bool, {100}, 1, 0, 2), b = noise(DType::Bool, {100}, 2, 0, 2);
  expectReference(fused(
      {a, b}, "x:bool = x0 && x1; y:bool = x0 || !x1; z:bool = x0 != x1; w:i64 = i64(x0) + 1;",
      "x,y,z,w"));
}

TEST(Fused, BroadcastsAndStrides) {
  Tensor full = noise(kF, {4, 5, 600}, 1), row = noise(kF, {600}, 2),
         column = noise(kF, {4, 5, 1}, 3);
  Tensor middle = noise(kF, {4, 1, 600}, 4), one = noise(kF, {}, 5);
  std::vector<Tensor> in;
  for (const Tensor &x : {full, row, column, middle, one})
    in.push_back(asFloats(x, DType::F32));
  expectReference(fused(in, "a:f32 = x0 * x1 + x2; b:f32 = (a - x3) * x4 + a; c:bool = x0 > x2;",
                        "b,a,c", 1e-6));
}

TEST(Fused, SizesAroundTiles) {
  for (int64_t n : {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 20000})
    expectReference(
        fused({noise(DType::F32, {n}, 1), noise(DType::F32, {n}, 2)}, "y:f32 = x0 * 2 + x1;", "y"));
}

TEST(Fused, ManyLiveValues) {
  // 60 values that all live to the end.
  std::string body = "t0:f64 = x0;", sum = "t0";
  for (int i = 1; i < 60; ++i) {
    std::string name = "t" + std::to_string(i);
    body += name + ":f64 = x0 * " + std::to_string(i) + ";";
    sum += " + " + name;
  }
  body += "y:f64 = " + sum + ";";
  Tensor x = noise(DType::F64, {5000}, 1);
  KernelRun run("fused");
  run.attr("body", body).attr("outputs", std::string("y")).in(x).out(DType::F64, {5000});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  for (int64_t i = 0; i < 5000; ++i)
    ASSERT_NEAR(run.result().asDouble(i), x.asDouble(i) * (1 + 59 * 60 / 2), 1e-9);
}

TEST(Fused, InPlaceWhileStillRead) {
  // The first result takes the memory of x0, which the second still needs.
  Tensor x = noise(DType::F32, {3000}, 1);
  KernelRun run("fused");
  run.attr("body", std::string("a:f32 = x0 * 2; b:f32 = x0 + a;"))
      .attr("outputs", std::string("a,b"));
  run.in(x).outOver(0).out(DType::F32, {3000});
  ASSERT_EQ(messageOf(run.bindAndRun()), "");
  for (int64_t i = 0; i < 3000; ++i)
    ASSERT_FLOAT_EQ(run.result(1).data<float>()[i], 3 * x.data<float>()[i]);
}

TEST(Fused, DropoutDrawsByGlobalIndex) {
  for (int64_t shard : {0, 3}) {
    KernelRun run("fused");
    run.attr("body", std::string("y:f32 = x0 * keep(0.3, 5, 1); z:f32 = x0 * keep(0.3, 5, 0);"));
    run.attr("outputs", std::string("y,z")).in(Tensor::splat(DType::F32, {7, 1000}, 1));
    run.out(DType::F32, {7, 1000}).out(DType::F32, {7, 1000});
    run.scalars()[kSeed] = 42;
    run.scalars()[kStep] = 9;
    run.scalars()[kShardIndex] = double(shard);
    ASSERT_EQ(messageOf(run.bindAndRun()), "");
    DropoutDraw draw(42, 9, 5, 0.3);
    for (uint64_t i = 0; i < 7000; ++i) {
      ASSERT_EQ(run.result(0).data<float>()[i], float(draw.factor(shard * 7000 + i))) << i;
      ASSERT_EQ(run.result(1).data<float>()[i], float(draw.factor(i))) << i;
    }
  }
}

TEST(Fused, RefusesWhatDoesNotFit) {
  auto message = [](const char *body, const char *outputs, Dims in, DType out) {
    KernelRun run("fused");
    run.attr("body", std::string(body)).attr("outputs", std::string(outputs));
    run.in(Tensor(DType::F32, in)).out(out, {4});
    return messageOf(run.bind());
  };
  EXPECT_EQ(message("y:f32 = x0;", "y", {4}, DType::F32), "");
  EXPECT_NE(message("y:f32 = x0;", "y", {3}, DType::F32), "");
  EXPECT_NE(message("y:f32 = x0;", "y", {4}, DType::F64), "");
  EXPECT_NE(message("y:f32 = x0;", "y,y", {4}, DType::F32), "");
  EXPECT_NE(message("y:f32 = x1;", "y", {4}, DType::F32), "");
  EXPECT_EQ(message("y:f16 = f16(x0);", "y", {4}, DType::F16), "");
  EXPECT_NE(message("y:f16 = f16(x0);", "y", {4}, DType::BF16), "");
  EXPECT_NE(message("y:f32 = x0 * keep(1.5, 0, 0);", "y", {4}, DType::F32), "");
}

} // namespace
} // namespace shardc::host
