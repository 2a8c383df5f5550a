// SPDX-License-Identifier: Apache-2.0
// relative_attention_grad(dout, q, k, v, pos_key?, pos_query?, out, lse, mask?) -> dq, dk, dv[, dpos_key][, dpos_query]:
// a thread takes a head, and its batch in order, so that the sums over the batch have one order.
#include "runtime/host/AttentionHeadGrad.h"
#include "runtime/host/JoinedHeads.h"
#include "runtime/host/RelativeAttention.h"

namespace shardc::host {
namespace {

template <typename T> class RelativeAttentionGrad final : public Kernel {
public:
  RelativeAttentionGrad(const Binding &b, const Checks &c, const AttentionShape &shape)
      : grad_(b, c, shape, 6, 8), dposKey_(grad_.scores.posKey ? b.out[3] : Array()),
        dposQuery_(grad_.scores.posQuery ? b.out[grad_.scores.posKey ? 4 : 3] : Array()) {}

  void run() override {
    const AttentionShape &s = grad_.shape;
    const bool shared = dposKey_ || dposQuery_; // by the batch
    const int64_t groups = s.heads * (shared ? 1 : s.batch), each = shared ? s.batch : 1;
    if (s.batch * s.heads == 0)
      return clear();
    parallelTasks(groups, 9 * s.headCost() * double(each), [&](int64_t group, int) {
      const int64_t h = group % s.heads, b0 = group / s.heads;
      clearPositions(h);
      for (int64_t b = b0; b < b0 + each; ++b)
        head(b, h);
    });
  }

private:
  void clear() const {
    for (int64_t h = 0; h < grad_.shape.heads; ++h)
      clearPositions(h);
  }
  void clearPositions(int64_t h) const {
    for (const Positions<T> *to : {&dposKey_, &dposQuery_})
      for (int64_t r = 0; *to && r < grad_.shape.queries + grad_.shape.keys - 1; ++r)
        std::fill_n(to->at(r, h), grad_.shape.depth, T(0));
  }

  void head(int64_t b, int64_t h) const {
    grad_.compute(b, h, [&](int64_t first, int64_t rows, const T *ds) {
      if (dposKey_ || dposQuery_)
        forTiles(grad_.shape, first, first + rows,
                 [&](const DistanceTile &t) { addTile(b, h, t, ds + (t.i - first) * grad_.shape.keys + t.j); });
    });
  }

  /// Of the terms of distances. `ds` is the tile's first, in rows of all keys.
  void addTile(int64_t b, int64_t h, const DistanceTile &t, const T *ds) const {
    const DistanceScores<T> &scores = grad_.scores;
    const int64_t wide = t.distances(), keys = grad_.shape.keys;
    T byDistance[kTileSide * kTileDistances]; // of each query, or of each key
    if (dposKey_) {
      std::fill_n(byDistance, t.rows * wide, T(0));
      forDistances(t, [&](int64_t y, int64_t x, int64_t r) { byDistance[y * wide + r] = ds[y * keys + x]; });
      addTerm(h, t, byDistance, t.rows, scores.q.matrix(b, h, t.i), grad_.dq.at(b, h, t.i), grad_.dq.row,
              scores.posKey, dposKey_);
    }
    if (dposQuery_) {
      std::fill_n(byDistance, t.columns * wide, T(0));
      forDistances(t, [&](int64_t y, int64_t x, int64_t r) { byDistance[x * wide + r] = ds[y * keys + x]; });
      addTerm(h, t, byDistance, t.columns, scores.k.matrix(b, h, t.j), grad_.dk.at(b, h, t.j), grad_.dk.row,
              scores.posQuery, dposQuery_);
    }
  }

  /// Of the products of `n` rows x with the tile's positions, both of which gather gradients. `ds` [n, distances].
  void addTerm(int64_t h, const DistanceTile &t, const T *ds, int64_t n, Matrix<T> x, T *dx, int64_t dxRow,
               const Positions<T> &positions, const Positions<T> &dpositions) const {
    const T scale = T(grad_.shape.scale);
    const int64_t wide = t.distances(), depth = grad_.shape.depth;
    const Matrix<T> each{ds, wide, 1};
    gemm<T>(n, depth, wide, scale, each, positions.matrix(t.first, h), T(1), dx, dxRow);
    gemm<T>(wide, depth, n, scale, each.transposed(), x, T(1), dpositions.at(t.first, h), dpositions.row);
  }

  AttentionHeadGrad<T, DistanceScores<T>> grad_;
  Positions<T> dposKey_, dposQuery_;
};

} // namespace

BoundKernel bindRelativeAttentionGrad(const Binding &given) {
  const Binding b = splitHeads(given);
  Checks c(b);
  AttentionShape s;
  const size_t results = 3 + bool(c.in(4)) + bool(c.in(5));
  if (!(c.arity(4, 9, results) && c.that(bool(c.in(6)) && bool(c.in(7)), "operands: wanted out and lse") &&
        relativeShape(c, 1, 8, s) && attentionGradOperands(c, s, 6)))
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
