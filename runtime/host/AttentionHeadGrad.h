// SPDX-License-Identifier: Apache-2.0
// Gradient of attention for one head over any scores. With p = exp(scores - lse), dropout factors m and
// delta = sum(dout out):
//   dv = (p m)^T dout,  ds = p (m (dout v^T) - delta),  dq = scale ds k,  dk = scale ds^T q.
// What a score has beside scale q k^T gets its gradient from ds: the caller's.
#pragma once

#include "runtime/host/AttentionGradRow.h"
#include "runtime/host/Rows.h"

namespace shardc::host {

template <typename T, typename S> struct AttentionHeadGrad {
  AttentionShape shape;
  S scores;
  Heads<T> dout, v, out, dq, dk, dv;

  /// q, k, v are operands 1 to 3; out is at `outAt`, lse behind it; `operands`: places of what the scores read more.
  template <typename... Places>
  AttentionHeadGrad(const Binding &b, const Checks &c, const AttentionShape &s, unsigned outAt, Places... operands)
      : shape(s), scores(shape, c, 1, operands...), dout(b.in[0]), v(b.in[3]), out(b.in[outAt]), dq(b.out[0]),
        dk(b.out[1]), dv(b.out[2]), lse_(b.in[outAt + 1].as<T>()), lseRows_(Rows::of(b.in[outAt + 1], 1)),
        scalars_(b.scalars) {}
  AttentionHeadGrad(const AttentionHeadGrad &) = delete; // the scores refer to the shape

  /// All of dq, dk, dv of the head. `more(first, rows, ds)`: ds[rows, Sk] of the queries [first, first + rows), which
  /// it may overwrite.
  template <typename F> void compute(int64_t b, int64_t h, F more) const {
    alignas(64) T p[kScoreBytes / sizeof(T)], ds[kScoreBytes / sizeof(T)];
    const AttentionShape &s = shape;
    const int64_t n = s.keys;
    for (int64_t j = 0; s.queries == 0 && j < n; ++j) {
      std::fill_n(dk.at(b, h, j), s.depth, T(0));
      std::fill_n(dv.at(b, h, j), s.valueDepth, T(0));
    }
    for (int64_t first = 0; first < s.queries; first += s.blockRows) {
      int64_t rows = std::min(s.blockRows, s.queries - first);
      T again = first == 0 ? T(0) : T(1); // dk and dv are sums over the blocks
      scores.compute(b, h, first, rows, p);
      gemm<T>(rows, n, s.valueDepth, T(1), dout.matrix(b, h, first), v.matrix(b, h, 0).transposed(), T(0), ds, n);
      for (int64_t i = 0; i < rows; ++i)
        row(b, h, first + i, p + i * n, ds + i * n);
      gemm<T>(n, s.valueDepth, rows, T(1), Matrix<T>{p, n, 1}.transposed(), dout.matrix(b, h, first), again,
              dv.at(b, h, 0), dv.row);
      gemm<T>(rows, s.depth, n, T(s.scale), {ds, n, 1}, scores.k.matrix(b, h, 0), T(0), dq.at(b, h, first), dq.row);
      gemm<T>(n, s.depth, rows, T(s.scale), Matrix<T>{ds, n, 1}.transposed(), scores.q.matrix(b, h, first), again,
              dk.at(b, h, 0), dk.row);
      more(first, rows, ds);
    }
  }

private:
  /// In: scores p and dout v^T in ds. Out: p m and ds.
  void row(int64_t b, int64_t h, int64_t i, T *p, T *ds) const {
    const T *dy = dout.at(b, h, i), *y = out.at(b, h, i);
    const T delta = T(sumOf<T>(shape.valueDepth, [=](int64_t l) { return dy[l] * y[l]; }));
    gradientRow(shape, scalars_, b, h, i, lse_[lseRows_[b * shape.heads + h] + i], delta, scores.constants(b, h, i), p,
                ds);
  }

  const T *lse_;
  Rows lseRows_;
  const double *scalars_;
};

/// Of a shape that was checked: dout, out at `outAt`, and lse behind it.
inline bool attentionGradOperands(Checks &c, const AttentionShape &s, unsigned outAt) {
  for (unsigned i : {0u, outAt})
    if (!(c.dims(c.in(i), s.out()) && c.dtype(c.in(i), s.dtype) && c.lastDim(c.in(i))))
      return false;
  const Array &lse = c.in(outAt + 1);
  return c.dims(lse, s.lse()) && c.dtype(lse, s.dtype) && c.lastDim(lse);
}

} // namespace shardc::host
