// SPDX-License-Identifier: Apache-2.0
// The meaning of each scalar code on C++ numbers: what folding computes and kernels must match.
// Integers wrap around; nothing here is undefined behaviour for any operand.
#pragma once

#include "ir/base/DType.h"
#include <cmath>
#include <limits>
#include <type_traits>

namespace shardc::scalar {

template <typename T> constexpr bool kIsInt = std::is_integral_v<T>;

template <typename T> T add(T a, T b) {
  if constexpr (kIsInt<T>)
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <typename T> T sub(T a, T b) {
  if constexpr (kIsInt<T>)
    return T(uint64_t(a) - uint64_t(b));
  else
    return a - b;
}
template <typename T> T mul(T a, T b) {
  if constexpr (kIsInt<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}
template <typename T> T neg(T a) {
  if constexpr (kIsInt<T>)
    return sub(T(0), a);
  else
    return -a;
}
/// Integers truncate; by zero gives 0.
template <typename T> T div(T a, T b) {
  if constexpr (!kIsInt<T>)
    return a / b;
  else if constexpr (std::is_signed_v<T>)
    return b == 0 ? T(0) : b == -1 ? neg(a) : T(a / b);
  else
    return b == 0 ? T(0) : T(a / b);
}
/// Integers: the sign of the divisor, 0 for a divisor of 0. Floats: fmod.
template <typename T> T mod(T a, T b) {
  if constexpr (!kIsInt<T>) {
    return std::fmod(a, b);
  } else if constexpr (std::is_signed_v<T>) {
    if (b == 0 || b == -1)
      return 0;
    T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  } else {
    return b == 0 ? T(0) : T(a % b);
  }
}
/// Integers: exact with wrap-around; a negative exponent truncates the true value, 0^-n is 0.
template <typename T> T pow(T a, T b) {
  if constexpr (!kIsInt<T>) {
    return std::pow(a, b);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b < 0)
        return a == 1 ? T(1) : a == -1 ? T(b % 2 ? -1 : 1) : T(0);
    T result = 1;
    for (; b != 0; b = T(b / 2)) {
      if (b % 2 != 0)
        result = mul(result, a);
      a = mul(a, a);
    }
    return result;
  }
}
/// NaN if one of them is.
template <typename T> T max(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> T min(T a, T b) { return a < b || a != a ? a : b; }
template <typename T> T abs(T a) {
  if constexpr (!kIsInt<T>)
    return std::fabs(a);
  else if constexpr (std::is_signed_v<T>)
    return a < 0 ? neg(a) : a;
  else
    return a;
}
/// -1, 0, 1; NaN stays NaN.
template <typename T> T sign(T a) {
  if constexpr (std::is_unsigned_v<T>)
    return T(a > 0);
  else
    return a > 0 ? T(1) : a < 0 ? T(-1) : a;
}

/// Float to integer truncates and saturates (NaN: 0); integer to integer wraps; to bool: not 0.
template <typename To, typename From> To convert(From a) {
  if constexpr (kIsInt<To> && !kIsInt<From>) {
    // 2^digits is exact in every float type, the largest integer is not.
    From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
    if (!(a > (std::is_signed_v<To> ? -above : From(-1))))
      return a != a ? To(0) : std::numeric_limits<To>::min();
    return a < above ? To(a) : std::numeric_limits<To>::max();
  } else {
    return To(a);
  }
}

} // namespace shardc::scalar
