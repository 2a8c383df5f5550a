// SPDX-License-Identifier: Apache-2.0
// relative_attention_grad(dout, q, k, v, pos_key?, pos_query?, out, lse, mask?) -> dq, dk, dv[, dpos_key][, dpos_query]:
// a thread takes a head, and its batch in order, so that the sums over the batch have one order.
#include "runtime/host/AttentionGradRow.h"
#include "runtime/host/JoinedHeads.h"
#include "runtime/host/RelativeAttention.h"
#include "runtime/host/Rows.h"

namespace shardc::host {
namespace {

template <typename T> class RelativeAttentionGrad final : public Kernel {
public:
  RelativeAttentionGrad(const Binding &b, const Checks &c, const AttentionShape &shape)
      : shape_(shape), scores_(shape_, c, 1, 8), dout_(b.in[0]), v_(b.in[3]), out_(b.in[6]), dq_(b.out[0]),
        dk_(b.out[1]), dv_(b.out[2]), dposKey_(scores_.posKey ? b.out[3] : Array()),
        dposQuery_(scores_.posQuery ? b.out[scores_.posKey ? 4 : 3] : Array()), lse_(b.in[7].as<T>()),
        lseRows_(Rows::of(b.in[7], 1)), scalars_(b.scalars) {}

  void run() override {
    const bool shared = dposKey_ || dposQuery_; // by the batch
    const int64_t groups = shape_.heads * (shared ? 1 : shape_.batch), each = shared ? shape_.batch : 1;
    if (shape_.batch * shape_.heads == 0)
      return clear();
    parallelTasks(groups, 9 * shape_.headCost() * double(each), [&](int64_t group, int) {
      const int64_t h = group % shape_.heads, b0 = group / shape_.heads;
      clearPositions(h);
      for (int64_t b = b0; b < b0 + each; ++b)
        head(b, h);
    });
  }

private:
  void clear() const {
    for (int64_t h = 0; h < shape_.heads; ++h)
      clearPositions(h);
  }
  void clearPositions(int64_t h) const {
    for (const Positions<T> *to : {&dposKey_, &dposQuery_})
      for (int64_t r = 0; *to && r < shape_.queries + shape_.keys - 1; ++r)
        std::fill_n(to->at(r, h), shape_.depth, T(0));
  }

  void head(int64_t b, int64_t h) const {
    alignas(64) T p[kScoreBytes / sizeof(T)], ds[kScoreBytes / sizeof(T)];
    const AttentionShape &s = shape_;
    const int64_t n = s.keys;
    const Scores<T> &content = scores_.content;
    if (s.queries == 0)
      for (int64_t j = 0; j < n; ++j) {
        std::fill_n(dk_.at(b, h, j), s.depth, T(0));
        std::fill_n(dv_.at(b, h, j), s.valueDepth, T(0));
      }
    for (int64_t first = 0; first < s.queries; first += s.blockRows) {
      int64_t rows = std::min(s.blockRows, s.queries - first);
      T again = first == 0 ? T(0) : T(1); // dk and dv are sums over the blocks
      scores_.compute(b, h, first, rows, p);
      gemm<T>(rows, n, s.valueDepth, T(1), dout_.matrix(b, h, first), v_.matrix(b, h, 0).transposed(), T(0), ds, n);
      for (int64_t i = 0; i < rows; ++i)
        row(b, h, first + i, p + i * n, ds + i * n);
      gemm<T>(n, s.valueDepth, rows, T(1), Matrix<T>{p, n, 1}.transposed(), dout_.matrix(b, h, first), again,
              dv_.at(b, h, 0), dv_.row);
      gemm<T>(rows, s.depth, n, T(s.scale), {ds, n, 1}, content.k.matrix(b, h, 0), T(0), dq_.at(b, h, first), dq_.row);
      gemm<T>(n, s.depth, rows, T(s.scale), Matrix<T>{ds, n, 1}.transposed(), content.q.matrix(b, h, first), again,
              dk_.at(b, h, 0), dk_.row);
      if (dposKey_ || dposQuery_)
        forTiles(s, first, first + rows, [&](const DistanceTile &t) { addTile(b, h, t, ds + (t.i - first) * n + t.j); });
    }
  }

  void row(int64_t b, int64_t h, int64_t i, T *p, T *ds) const {
    const AttentionShape &s = shape_;
    const T *dout = dout_.at(b, h, i), *out = out_.at(b, h, i);
    const T delta = T(sumOf<T>(s.valueDepth, [=](int64_t l) { return dout[l] * out[l]; }));
    gradientRow(s, scalars_, b, h, i, lse_[lseRows_[b * s.heads + h] + i], delta, scores_.maskRow(b, h, i), p, ds);
  }

  /// Of the terms of distances. `ds` is the tile's first, in rows of all keys.
  void addTile(int64_t b, int64_t h, const DistanceTile &t, const T *ds) const {
    const Scores<T> &content = scores_.content;
    const T scale = T(shape_.scale);
    const int64_t wide = t.distances(), depth = shape_.depth;
    T byDistance[kTileSide * kTileDistances]; // of each query, or of each key
    if (dposKey_) {
      std::fill_n(byDistance, t.rows * wide, T(0));
      for (int64_t y = 0; y < t.rows; ++y)
        for (int64_t x = 0; x < t.columns; ++x)
          byDistance[y * wide + t.at(y, x)] = ds[y * shape_.keys + x];
      gemm<T>(t.rows, depth, wide, scale, {byDistance, wide, 1}, scores_.posKey.matrix(t.first, h), T(1),
              dq_.at(b, h, t.i), dq_.row);
      gemm<T>(wide, depth, t.rows, scale, Matrix<T>{byDistance, wide, 1}.transposed(), content.q.matrix(b, h, t.i),
              T(1), dposKey_.at(t.first, h), dposKey_.row);
    }
    if (dposQuery_) {
      std::fill_n(byDistance, t.columns * wide, T(0));
      for (int64_t y = 0; y < t.rows; ++y)
        for (int64_t x = 0; x < t.columns; ++x)
          byDistance[x * wide + t.at(y, x)] = ds[y * shape_.keys + x];
      gemm<T>(t.columns, depth, wide, scale, {byDistance, wide, 1}, scores_.posQuery.matrix(t.first, h), T(1),
              dk_.at(b, h, t.j), dk_.row);
      gemm<T>(wide, depth, t.columns, scale, Matrix<T>{byDistance, wide, 1}.transposed(), content.k.matrix(b, h, t.j),
              T(1), dposQuery_.at(t.first, h), dposQuery_.row);
    }
  }

  AttentionShape shape_;
  DistanceScores<T> scores_;
  Heads<T> dout_, v_, out_, dq_, dk_, dv_;
  Positions<T> dposKey_, dposQuery_;
  const T *lse_;
  Rows lseRows_;
  const double *scalars_;
};

} // namespace

BoundKernel bindRelativeAttentionGrad(const Binding &given) {
  const Binding b = splitHeads(given);
  Checks c(b);
  AttentionShape s;
  const size_t results = 3 + bool(c.in(4)) + bool(c.in(5));
  if (!(c.arity(4, 9, results) && c.that(bool(c.in(6)) && bool(c.in(7)), "operands: wanted out and lse") &&
        relativeShape(c, 1, 8, s)))
    return c.take();
  for (const Array *a : {&b.in[0], &b.in[6]})
    if (!(c.dims(*a, s.out()) && c.dtype(*a, s.dtype) && c.lastDim(*a)))
      return c.take();
  if (!(c.dims(b.in[7], s.lse()) && c.dtype(b.in[7], s.dtype) && c.lastDim(b.in[7])))
    return c.take();
  unsigned operand = 1;
  for (const Array &result : b.out) {
    while (!c.in(operand))
      ++operand;
    if (!(c.dims(result, c.in(operand++).dims) && c.dtype(result, s.dtype) && c.lastDim(result)))
      return c.take();
  }
  if (!c.apart())
    return c.take();
  return makeReal<RelativeAttentionGrad>(s.dtype, b, c, s);
}

} // namespace shardc::host
