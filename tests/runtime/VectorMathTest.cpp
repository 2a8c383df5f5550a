// SPDX-License-Identifier: Apache-2.0
// The elementary functions against libm's double ones: errors in units of the last place.
#include "runtime/host/VectorMath.h"
#include "gtest/gtest.h"

namespace shardc::host {
namespace {

/// Largest error in ulp over floats in [low, high], spread over exponents and evenly.
template <typename F, typename R> double worstError(F f, R reference, float low, float high) {
  double worst = 0;
  auto visit = [&](float x) {
    double wanted = reference(double(x));
    float rounded = float(wanted), got = f(x);
    if (std::isinf(rounded) || rounded == 0) {
      if (got != rounded)
        worst = 1e9;
      return;
    }
    double ulp = double(std::nextafter(std::fabs(rounded), INFINITY)) - std::fabs(rounded);
    worst = std::max(worst, std::fabs(got - wanted) / ulp);
  };
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 40009) {
    float x = std::bit_cast<float>(uint32_t(bits));
    if (x >= low && x <= high)
      visit(x);
  }
  for (int i = 0; i <= 100000; ++i)
    visit(low + float(i) * ((high - low) / 100000));
  return worst;
}

TEST(VectorMath, ErrorsBelowTwoUlp) {
  EXPECT_LT(
      worstError([](float x) { return exp(x); }, [](double x) { return std::exp(x); }, -110, 95),
      2);
  EXPECT_LT(worstError([](float x) { return expNegative(x); }, [](double x) { return std::exp(x); },
                       -86, 0),
            2);
  EXPECT_LT(worstError([](float x) { return log(x); }, [](double x) { return std::log(x); }, 1e-45f,
                       1e30f),
            2);
  EXPECT_LT(
      worstError([](float x) { return tanh(x); }, [](double x) { return std::tanh(x); }, -20, 20),
      2);
  EXPECT_LT(worstError([](float x) { return erf(x); }, [](double x) { return std::erf(x); }, -6, 6),
            2);
}

TEST(VectorMath, SpecialValues) {
  const float inf = INFINITY;
  EXPECT_EQ(exp(inf), inf);
  EXPECT_EQ(exp(-inf), 0);
  EXPECT_TRUE(std::isnan(exp(NAN)));
  EXPECT_EQ(expNegative(-inf), 0);
  EXPECT_TRUE(std::isnan(expNegative(NAN)));
  EXPECT_EQ(log(0.0f), -inf);
  EXPECT_EQ(log(inf), inf);
  EXPECT_TRUE(std::isnan(log(-1.0f)));
  EXPECT_TRUE(std::isnan(log(NAN)));
  EXPECT_EQ(tanh(inf), 1);
  EXPECT_EQ(tanh(-inf), -1);
  EXPECT_TRUE(std::signbit(tanh(-0.0f)));
  EXPECT_TRUE(std::isnan(tanh(NAN)));
  EXPECT_EQ(erf(inf), 1);
  EXPECT_EQ(erf(-inf), -1);
  EXPECT_TRUE(std::isnan(erf(NAN)));
}

} // namespace
} // namespace shardc::host
