// SPDX-License-Identifier: Apache-2.0
// Exponentials of one row, which softmax, attention and cross entropy share.
#pragma once

#include "runtime/host/Simd.h"
#include "runtime/host/VectorMath.h"

namespace shardc::host {

/// What is subtracted before exponentials: the largest element; 0 if that is -inf, so that a row
/// of -inf gives exponentials of 0 and not NaN.
template <typename T> T finiteMax(const T *x, int64_t n) {
  T top = maxOf(x, n);
  return top == -std::numeric_limits<T>::infinity() ? T(0) : top;
}

/// Sum of e^(x - top).
template <typename T> double sumExp(const T *x, int64_t n, T top) {
  return sumOf<T>(n, [=](int64_t i) { return expNegative(x[i] - top); });
}

/// y = e^(x - max) / sum, y may be x. Returns the logarithm of the sum of e^x: -inf for a row of
/// -inf, which gives zeros.
template <typename T> T softmaxRow(const T *x, int64_t n, T *y) {
  T top = finiteMax(x, n);
  SHARDC_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = expNegative(x[i] - top);
  double sum = sumOf<T>(n, [=](int64_t i) { return y[i]; });
  T scale = sum == 0 ? T(0) : T(1 / sum);
  SHARDC_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] *= scale;
  return top + T(std::log(sum));
}

} // namespace shardc::host
