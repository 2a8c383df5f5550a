// SPDX-License-Identifier: Apache-2.0
// relative_attention(q, k, v, pos_key?, pos_query?, mask?) -> out, lse: as attention, with terms of distances.
#include "runtime/host/RelativeAttention.h"
#include "runtime/host/Rows.h"
#include "runtime/host/SoftmaxRow.h"

namespace shardc::host {

bool relativeShape(Checks &c, unsigned q, unsigned mask, AttentionShape &s) {
  constexpr unsigned kNone = 99;
  if (!attentionShape(c, q, kNone, mask, s))
    return false;
  for (unsigned i : {q + 3, q + 4})
    if (const Array &pos = c.in(i))
      if (!(c.dtype(pos, s.dtype) && c.dims(pos, {s.queries + s.keys - 1, s.heads, s.depth}) && c.lastDim(pos)))
        return false;
  return true;
}

namespace {

template <typename T> class RelativeAttention final : public Kernel {
public:
  RelativeAttention(const Binding &b, const Checks &c, const AttentionShape &shape)
      : shape_(shape), scores_(shape_, c, 0, 5), v_(b.in[2]), out_(b.out[0]), lse_(b.out[1].as<T>()),
        scalars_(b.scalars) {}

  void run() override {
    parallelTasks(shape_.batch * shape_.heads, 3 * shape_.headCost(),
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
  DistanceScores<T> scores_;
  Heads<T> v_, out_;
  T *lse_;
  const double *scalars_;
};

} // namespace

BoundKernel bindRelativeAttention(const Binding &b) {
  Checks c(b);
  AttentionShape s;
  if (!(c.arity(3, 6, 2) && relativeShape(c, 0, 5, s) && c.dims(b.out[0], s.out()) && c.dims(b.out[1], s.lse()) &&
        c.dtype(b.out[0], s.dtype) && c.dtype(b.out[1], s.dtype) && c.denseResults() && c.apart()))
    return c.take();
  return makeReal<RelativeAttention>(s.dtype, b, c, s);
}

} // namespace shardc::host
