// SPDX-License-Identifier: Apache-2.0
// Elementary functions without branches, so that loops over them are vectorised: f32 within 2 ulp
// of the true value; f64 is libm's. NaN, infinities and signed zeros behave as in libm.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace shardc::host {

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }

/// 2^n for n in [-126, 127].
inline float exp2i(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

inline constexpr float kRoundToInteger = 12582912.0f; ///< 1.5 * 2^23: adding it rounds to an integer

/// e^a = 2^n e^r with n = round(a / ln 2), |r| <= ln 2 / 2: returns e^r. The last bits of `shifted` are n. Requires: |a| <= 104.
inline float expFraction(float a, float &shifted) {
  shifted = fma(a, 1.44269504f, kRoundToInteger);
  float n = shifted - kRoundToInteger;
  float r = fma(n, -6.93359375e-1f, a);
  r = fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  return fma(p, r * r, r) + 1.0f;
}

/// e^x.
inline float exp(float x) {
  // Beyond these the result is inf or 0 anyway; NaN passes through both comparisons.
  float a = x > 89.0f ? 89.0f : x;
  a = a < -104.0f ? -104.0f : a;
  float shifted, p = expFraction(a, shifted);
  int32_t k = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRoundToInteger);
  // In two factors, so that subnormal results and those next to the largest float come out.
  int32_t half = k >> 1;
  half = half < -126 ? -126 : half > 127 ? 127 : half; // only a NaN's k is that far out
  int32_t rest = k - half;
  rest = rest < -126 ? -126 : rest > 127 ? 127 : rest;
  return p * exp2i(half) * exp2i(rest);
}

/// For x <= 88, as in softmax: one factor, results below 2^-125 are 0.
inline float expNegative(float x) {
  float a = x < -87.0f ? -87.0f : x;
  float shifted, p = expFraction(a, shifted);
  uint32_t k = std::bit_cast<uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + k);
  y = x < -87.0f ? 0.0f : y;
  return x != x ? x : y;
}
inline double expNegative(double x) { return std::exp(x); }

/// log x = e ln 2 + log1p(m), m in [-1/3, 1/3].
inline float log(float x) {
  bool tiny = x < 1.175494351e-38f;
  float a = tiny ? x * 8388608.0f : x;
  // Unsigned: where x is not positive this wraps around, and the result is replaced below.
  uint32_t bits = std::bit_cast<uint32_t>(a), e = (bits - 0x3f2aaaabu) & 0xff800000u;
  float m = std::bit_cast<float>(bits - e) - 1.0f;
  float i = fma(float(int32_t(e)), 1.19209290e-7f, tiny ? -23.0f : 0.0f);
  float s = m * m;
  float r = -0.130310059f, t = 0.140869141f;
  r = fma(r, s, -0.121484190f);
  t = fma(t, s, 0.139814854f);
  r = fma(r, s, -0.166846052f);
  t = fma(t, s, 0.200120345f);
  r = fma(r, s, -0.249996200f);
  r = fma(t, m, r);
  r = fma(r, m, 0.333331972f);
  r = fma(r, m, -0.500000000f);
  r = fma(r, s, m);
  r = fma(i, 0.693147182f, r);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  r = x < kInf ? r : x; // inf and NaN
  r = x == 0.0f ? -kInf : r;
  return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : r;
}

/// Odd polynomial near 0, else 1 - 2 / (e^2|x| + 1).
inline float tanh(float x) {
  float t = std::fabs(x), s = x * x;
  float e = exp(2.0f * (t > 10.0f ? 10.0f : t));
  float far = 1.0f - 2.0f / (e + 1.0f);
  float p = 1.57394409e-2f;
  p = fma(p, s, -5.23025580e-2f);
  p = fma(p, s, 1.33152470e-1f);
  p = fma(p, s, -3.33327681e-1f);
  p = fma(p * s, x, x);
  float y = t >= 0.599609375f ? std::copysign(far, x) : p;
  return x != x ? x : std::copysign(y, x);
}

/// Odd polynomial near 0, else 1 - e^(polynomial in |x|).
inline float erf(float x) {
  float t = std::fabs(x), s = x * x;
  float a = t > 4.0f ? 4.0f : t, b = a * a;
  float r = fma(-1.72853470e-5f, a, 3.83197126e-4f);
  float u = fma(-3.88396438e-3f, a, 2.42546219e-2f);
  r = fma(r, b, u);
  r = fma(r, a, -1.06777877e-1f);
  r = fma(r, a, -6.34846687e-1f);
  r = fma(r, a, -1.28717512e-1f);
  r = fma(r, a, -a);
  float far = std::copysign(1.0f - exp(r), x);
  float p = -5.96761703e-4f;
  p = fma(p, s, 4.99119423e-3f);
  p = fma(p, s, -2.67681349e-2f);
  p = fma(p, s, 1.12819925e-1f);
  p = fma(p, s, -3.76125336e-1f);
  p = fma(p, s, 1.28379166e-1f);
  p = fma(p, x, x);
  float y = t > 0.927734375f ? far : p;
  return x != x ? x : y;
}

} // namespace shardc::host
