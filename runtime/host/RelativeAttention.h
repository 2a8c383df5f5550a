// SPDX-License-Identifier: Apache-2.0
// What relative_attention and its gradient share: scores of a block of rows, and the walk over tiles in which the
// distances of queries and keys are a short run of rows of pos_key and pos_query.
#pragma once

#include "runtime/host/Attention.h"

namespace shardc::host {

/// A tile of queries and keys has at most so many of each.
constexpr int64_t kTileSide = 32, kTileDistances = 2 * kTileSide - 1;

/// A pos_key or pos_query [R, H, D], or its gradient; data is null for an absent one.
template <typename T> struct Positions {
  T *data;
  int64_t row = 0, head = 0;
  explicit Positions(const Array &a) : data(a.as<T>()) {
    if (data)
      row = a.strides[0], head = a.strides[1];
  }
  explicit operator bool() const { return data; }
  T *at(int64_t r, int64_t h) const { return data + r * row + h * head; }
  Matrix<T> matrix(int64_t r, int64_t h) const { return {at(r, h), row, 1}; }
};

/// Queries [i, i + rows) and keys [j, j + columns), whose distances are rows [first, first + distances()) of the
/// position operands: query y and key x have row first + y - x + columns - 1.
struct DistanceTile {
  int64_t i, j, rows, columns, first;
  int64_t distances() const { return rows + columns - 1; }
  int64_t at(int64_t y, int64_t x) const { return y - x + columns - 1; }
};

/// f(y, x, r) for all queries y and keys x of a tile, whose distance is row first + r.
template <typename F> void forDistances(const DistanceTile &t, F f) {
  for (int64_t y = 0; y < t.rows; ++y)
    for (int64_t x = 0; x < t.columns; ++x)
      f(y, x, t.at(y, x));
}

/// f(tile) for all tiles of queries [begin, end) and all keys.
template <typename F> void forTiles(const AttentionShape &s, int64_t begin, int64_t end, F f) {
  for (int64_t i = begin; i < end; i += kTileSide)
    for (int64_t j = 0; j < s.keys; j += kTileSide) {
      DistanceTile t{i, j, std::min(kTileSide, end - i), std::min(kTileSide, s.keys - j), 0};
      t.first = i - j - (t.columns - 1) + s.keys - 1;
      f(t);
    }
}

/// Operands q, k, v, pos_key, pos_query from `q` on, the mask at `mask`, and the attributes.
bool relativeShape(Checks &c, unsigned q, unsigned mask, AttentionShape &shape);

template <typename T> struct DistanceScores {
  static constexpr double kProducts = 3; ///< q k^T, q pos_key^T, k pos_query^T
  const AttentionShape &shape;
  Heads<T> q, k;
  Positions<T> posKey, posQuery;
  DistanceScores(const AttentionShape &shape, const Checks &c, unsigned q, unsigned mask)
      : shape(shape), q(c.in(q)), k(c.in(q + 1)), posKey(c.in(q + 3)), posQuery(c.in(q + 4)),
        content_(shape, c, q, kNoOperand, kNoOperand), masked_(shape, c, q, kNoOperand, mask) {}

  /// to[rows, Sk]: as `Scores::compute`.
  void compute(int64_t b, int64_t h, int64_t first, int64_t rows, T *to) const {
    content_.compute(b, h, first, rows, to);
    if (posKey || posQuery)
      forTiles(shape, first, first + rows, [&](const DistanceTile &t) { addTile(b, h, first, t, to); });
    for (int64_t i = 0; i < rows; ++i)
      masked_.hide(b, h, first + i, to + i * shape.keys);
  }
  const uint8_t *constants(int64_t b, int64_t h, int64_t i) const { return masked_.maskRow(b, h, i); }

private:
  void addTile(int64_t b, int64_t h, int64_t first, const DistanceTile &t, T *to) const {
    T terms[kTileSide * kTileDistances];
    const int64_t wide = t.distances();
    auto score = [&](int64_t y, int64_t x) -> T & { return to[(t.i - first + y) * shape.keys + t.j + x]; };
    if (posKey) {
      gemm<T>(t.rows, wide, shape.depth, T(shape.scale), q.matrix(b, h, t.i),
              posKey.matrix(t.first, h).transposed(), T(0), terms, wide);
      forDistances(t, [&](int64_t y, int64_t x, int64_t r) { score(y, x) += terms[y * wide + r]; });
    }
    if (posQuery) {
      gemm<T>(t.columns, wide, shape.depth, T(shape.scale), k.matrix(b, h, t.j),
              posQuery.matrix(t.first, h).transposed(), T(0), terms, wide);
      forDistances(t, [&](int64_t y, int64_t x, int64_t r) { score(y, x) += terms[x * wide + r]; });
    }
  }

  Scores<T> content_, masked_; ///< without and with the mask
};

} // namespace shardc::host
