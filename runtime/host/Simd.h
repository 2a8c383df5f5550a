// SPDX-License-Identifier: Apache-2.0
// What loops say to the vectoriser, and sums in a fixed order that it can vectorise.
#pragma once

#include <cstdint>

/// Before a loop: no iteration depends on another, whatever the pointers.
#if defined(__clang__)
#define SHARDC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SHARDC_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace shardc::host {

/// f(0) + ... + f(n - 1) in T's precision, in an order that depends on n only: 32 lanes, emptied
/// into a double every 1024 elements, so that the error stays as small as that of pairwise
/// summation.
template <typename T, typename F> double sumOf(int64_t n, F f) {
  constexpr int64_t kLanes = 32, kChunk = 1024;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    int64_t end = begin + kChunk < n ? begin + kChunk : n,
            whole = begin + (end - begin) / kLanes * kLanes;
    T lanes[kLanes] = {};
    for (int64_t i = begin; i < whole; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l)
        lanes[l] += f(i + l);
    for (int64_t i = whole; i < end; ++i)
      lanes[i - whole] += f(i);
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
      for (int64_t l = 0; l < width; ++l)
        lanes[l] += lanes[l + width];
    total += lanes[0];
  }
  return total;
}

/// Largest of x[0, n), -inf if n is 0. A NaN may be passed over.
template <typename T> T maxOf(const T *x, int64_t n) {
  constexpr int64_t kLanes = 32;
  T lanes[kLanes];
  for (T &lane : lanes)
    lane = -T(__builtin_inf());
  int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l)
      lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  for (int64_t i = whole; i < n; ++i)
    lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l)
      lanes[l] = lanes[l + width] > lanes[l] ? lanes[l + width] : lanes[l];
  return lanes[0];
}

} // namespace shardc::host
