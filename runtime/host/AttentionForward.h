// SPDX-License-Identifier: Apache-2.0
// The forward kernel of attention over any scores: one head after another, blocks of rows whose scores stay in the
// cache. `S` has the members of `Scores`.
#pragma once

#include "runtime/host/Attention.h"
#include "runtime/host/Rows.h"
#include "runtime/host/SoftmaxRow.h"

namespace shardc::host {

template <typename T, typename S> class AttentionForward final : public Kernel {
public:
  /// `operands`: places of what the scores read beside q and k.
  template <typename... Places>
  AttentionForward(const Binding &b, const Checks &c, const AttentionShape &shape, Places... operands)
      : shape_(shape), scores_(shape_, c, 0, operands...), v_(b.in[2]), out_(b.out[0]), lse_(b.out[1].as<T>()),
        scalars_(b.scalars) {}

  void run() override {
    parallelTasks(shape_.batch * shape_.heads, S::kProducts * shape_.headCost(),
                  [&](int64_t task, int) { head(task / shape_.heads, task % shape_.heads); });
  }

private:
  void head(int64_t b, int64_t h) const {
    alignas(64) T p[kScoreBytes / sizeof(T)];
    const AttentionShape &s = shape_;
    for (int64_t first = 0; first < s.queries; first += s.blockRows) {
      int64_t rows = std::min(s.blockRows, s.queries - first);
      scores_.compute(b, h, first, rows, p);
      T *lse = lse_ + (b * s.heads + h) * s.queries + first;
      for (int64_t i = 0; i < rows; ++i) {
        lse[i] = softmaxRow(p + i * s.keys, s.keys, p + i * s.keys);
        if (s.dropout > 0)
          dropRow(s, scalars_, b, h, first + i, p + i * s.keys);
      }
      gemm<T>(rows, s.valueDepth, s.keys, T(1), {p, s.keys, 1}, v_.matrix(b, h, 0), T(0), out_.at(b, h, first),
              out_.row);
    }
  }

  AttentionShape shape_;
  S scores_;
  Heads<T> v_, out_;
  T *lse_;
  const double *scalars_;
};

/// Of a shape that was checked: the results out and lse, and that nothing overlaps.
inline bool attentionResults(Checks &c, const AttentionShape &s) {
  return c.dims(c.out(0), s.out()) && c.dims(c.out(1), s.lse()) && c.dtype(c.out(0), s.dtype) &&
         c.dtype(c.out(1), s.dtype) && c.denseResults() && c.apart();
}

} // namespace shardc::host
