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
    const T scale = T(grad_.shape.scale);
    const int64_t wide = t.distances(), depth = grad_.shape.depth, keys = grad_.shape.keys;
    T byDistance[kTileSide * kTileDistances]; // of each query, or of each key
    if (dposKey_) {
      std::fill_n(byDistance, t.rows * wide, T(0));
      for (int64_t y = 0; y < t.rows; ++y)
        for (int64_t x = 0; x < t.columns; ++x)
          byDistance[y * wide + t.at(y, x)] = ds[y * keys + x];
      gemm<T>(t.rows, depth, wide, scale, {byDistance, wide, 1}, scores.posKey.matrix(t.first, h), T(1),
              grad_.dq.at(b, h, t.i), grad_.dq.row);
      gemm<T>(wide, depth, t.rows, scale, Matrix<T>{byDistance, wide, 1}.transposed(), scores.q.matrix(b, h, t.i),
              T(1), dposKey_.at(t.first, h), dposKey_.row);
    }
    if (dposQuery_) {
      std::fill_n(byDistance, t.columns * wide, T(0));
      for (int64_t y = 0; y < t.rows; ++y)
        for (int64_t x = 0; x < t.columns; ++x)
          byDistance[x * wide + t.at(y, x)] = ds[y * keys + x];
      gemm<T>(t.columns, depth, wide, scale, {byDistance, wide, 1}, scores.posQuery.matrix(t.first, h), T(1),
              grad_.dk.at(b, h, t.j), grad_.dk.row);
      gemm<T>(wide, depth, t.columns, scale, Matrix<T>{byDistance, wide, 1}.transposed(), scores.k.matrix(b, h, t.j),
              T(1), dposQuery_.at(t.first, h), dposQuery_.row);
    }
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
