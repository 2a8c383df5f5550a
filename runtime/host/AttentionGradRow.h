// SPDX-License-Identifier: Apache-2.0
// One row of the gradient of attention's scores.
#pragma once

#include "runtime/host/Attention.h"
#include "runtime/host/VectorMath.h"
#include <limits>

namespace shardc::host {

/// Row i of head h. In: scores in p, dout v^T in ds. Out: p m (dropout factors m) and ds = p (m (dout v^T) - delta), 0
/// where the mask (null: none; step as in the shape) hides.
template <typename T>
void gradientRow(const AttentionShape &s, const double *scalars, int64_t b, int64_t h, int64_t i, T lse, T delta,
                 const uint8_t *attends, T *p, T *ds) {
  constexpr int64_t kChunk = 512;
  const int64_t n = s.keys;
  if (lse == -std::numeric_limits<T>::infinity())
    std::fill_n(p, n, T(0));
  else if (lse < T(kMaskedLse)) // adding log(n) to the lowest float is lost: all scores are equal
    std::fill_n(p, n, T(1) / T(n));
  else {
    SHARDC_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      p[j] = expNegative(p[j] - lse);
  }
  if (s.dropout > 0) {
    KeepMask mask(scalars, s.dropout, s.id);
    uint64_t element = dropoutElement(s, scalars, b, h, i);
    T keep[kChunk];
    for (int64_t j0 = 0; j0 < n; j0 += kChunk) {
      int64_t width = std::min(kChunk, n - j0);
      mask.draw(keep, element + j0, width);
      SHARDC_INDEPENDENT
      for (int64_t l = 0; l < width; ++l) {
        T probability = p[j0 + l];
        ds[j0 + l] = probability * (keep[l] * ds[j0 + l] - delta);
        p[j0 + l] = probability * keep[l];
      }
    }
  } else {
    SHARDC_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      ds[j] = p[j] * (ds[j] - delta);
  }
  if (attends) {
    const int64_t step = s.maskStrides[3];
    for (int64_t j = 0; j < n; ++j)
      ds[j] = attends[j * step] ? ds[j] : T(0);
  }
}

} // namespace shardc::host
