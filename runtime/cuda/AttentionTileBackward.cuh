// SPDX-License-Identifier: Apache-2.0
// The gradient of attention for every case, over any scores. Each result has blocks of its own, which compute the
// probabilities that they need again from lse; so every sum has one order, and nothing is added by two blocks. `S` has
// the members of PlainScores.
#pragma once

#include "runtime/cuda/AttentionTile.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {

/// A tile of a head: what is in shared memory, and the gradient of one score a thread.
template <typename T, typename S> struct Tile {
  using C = Compute<T>;
  const AttentionWork &w;
  const C *delta; ///< sum of dout out, for each query of each head
  const int deep, valueDeep;
  C *q, *dout, *k, *v;
  S scores;
  C *rest;
  Keep keep;

  __device__ Tile(const typename S::Work &work, const C *delta)
      : w(baseOf(work)), delta(delta), deep(pitch(w.depth)), valueDeep(pitch(w.valueDepth)), q(dynamicShared<C>()),
        dout(q + kTile * deep), k(dout + kTile * valueDeep), v(k + S::kKeyRows * deep),
        scores(work, v + S::kKeyRows * valueDeep), rest(v + S::kKeyRows * valueDeep + 2 * S::kDistances * deep),
        keep(w) {}
  __device__ void loadQueries(int b, int h, int first) const {
    loadTile<T>(q, w.q, b, h, first, w.queries, w.depth, w.tf32);
    loadTile<T>(dout, w.dout, b, h, first, w.queries, w.valueDepth, w.tf32);
  }
  __device__ void loadKeys(int b, int h, int first) const {
    loadTile<T>(k, w.k, b, h, first, w.keys, w.depth, w.tf32);
    loadTile<T>(v, w.v, b, h, first, w.keys, w.valueDepth, w.tf32);
  }
  /// Of query i, row y of the tile, and key j, row x, whose distance is row r: p m and ds, or ds as the bias sees it.
  /// Zeros outside.
  __device__ void gradient(int b, int h, int i, int j, int y, int x, int r, C &dropped, C &ds,
                           bool ofBias = false) const {
    dropped = ds = 0;
    if (i >= w.queries || j < 0 || j >= w.keys)
      return;
    const C lse = load<C>(w.lse, b * w.lseBatch + h * w.lseHead + i);
    C p;
    if (lse == C(-INFINITY))
      p = 0;
    else if (lse < C(kMaskedLse)) // adding log(n) to the lowest float is lost: all scores are equal
      p = C(1) / C(w.keys);
    else
      p = exp(scores.score(b, h, i, j, q + y * deep, k + x * deep, r) - lse);
    const C m = keep.template factor<C>(b, h, i, j);
    const C dp = dot(dout + y * valueDeep, v + x * valueDeep, w.valueDepth);
    dropped = p * m;
    if ((S::kMaskAdds && w.maskAdds && !ofBias) || !hidden(w, b, h, i, j))
      ds = p * (m * dp - delta[((long long)(b)*w.heads + h) * w.queries + i]);
  }
};

/// A warp for each query.
template <typename T> __global__ void __launch_bounds__(kTileThreads) sumDeltas(AttentionWork w, Compute<T> *delta) {
  awaitStream();
  using C = Compute<T>;
  const long long row = blockIdx.x * (long long)(kTileThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= (long long)(w.batch) * w.heads * w.queries)
    return;
  const int i = row % w.queries, h = row / w.queries % w.heads, b = row / w.queries / w.heads;
  const T *dout = rowOf<T>(w.dout, b, h, i), *out = rowOf<T>(w.out, b, h, i);
  C sum = 0;
  for (int c = threadIdx.x % kWarp; c < w.valueDepth; c += kWarp)
    sum += productOperand(dout[c], w.tf32) * C(widen(out[c]));
  sum = warpJoin(sum, Plus());
  if (threadIdx.x % kWarp == 0)
    delta[row] = sum;
}

template <typename T, typename S>
__global__ void __launch_bounds__(kTileThreads) gradQueries(typename S::Work work, const Compute<T> *delta) {
  awaitStream();
  using C = Compute<T>;
  const AttentionWork &w = baseOf(work);
  const int tiles = (w.queries + kTile - 1) / kTile, deep = pitch(w.depth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T, S> tile(work, delta);
  C *ds = tile.rest, *dq = ds + kTile * pitch(kTile);
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  tile.loadQueries(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dq[y * deep + c] = 0;
  for (int begin = 0; begin < w.keys; begin += kTile) {
    tile.loadKeys(b, h, begin);
    tile.scores.loadDistances(h, first, begin);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, first + y, begin + x, y, x, distanceRow(y, x), dropped, one);
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dq[y * deep + c];
      for (int l = 0; l < kTile; ++l)
        value += ds[y * pitch(kTile) + l] * tile.scores.ofKey(tile.k + l * deep, distanceRow(y, l), c);
      dq[y * deep + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.dq, b, h, first, w.queries, w.depth, dq, C(w.scale));
}

template <typename T, typename S>
__global__ void __launch_bounds__(kTileThreads) gradKeys(typename S::Work work, const Compute<T> *delta) {
  awaitStream();
  using C = Compute<T>;
  const AttentionWork &w = baseOf(work);
  const int tiles = (w.keys + kTile - 1) / kTile, deep = pitch(w.depth), valueDeep = pitch(w.valueDepth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T, S> tile(work, delta);
  C *p = tile.rest, *ds = p + kTile * pitch(kTile), *dk = ds + kTile * pitch(kTile), *dv = dk + kTile * deep;
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile; // y is the key here
  tile.loadKeys(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dk[y * deep + c] = 0;
  for (int c = x; c < w.valueDepth; c += kTile)
    dv[y * valueDeep + c] = 0;
  for (int begin = 0; begin < w.queries; begin += kTile) {
    tile.loadQueries(b, h, begin);
    tile.scores.loadDistances(h, begin, first);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, begin + x, first + y, x, y, distanceRow(x, y), dropped, one);
    p[y * pitch(kTile) + x] = dropped;
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dk[y * deep + c];
      for (int l = 0; l < kTile; ++l)
        value += ds[y * pitch(kTile) + l] * tile.scores.ofQuery(tile.q + l * deep, distanceRow(l, y), c);
      dk[y * deep + c] = value;
    }
    for (int c = x; c < w.valueDepth; c += kTile) {
      C value = dv[y * valueDeep + c];
      for (int l = 0; l < kTile; ++l)
        value += p[y * pitch(kTile) + l] * tile.dout[l * valueDeep + c];
      dv[y * valueDeep + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.dk, b, h, first, w.keys, w.depth, dk, C(w.scale));
  storeTile<T>(w.dv, b, h, first, w.keys, w.valueDepth, dv, C(1));
}

/// Bytes of shared memory that a block wants. `results`: pitches that its rows of results have.
template <template <typename> class S> int tileGradShared(const AttentionWork &w, int results) {
  const int deep = pitch(w.depth), valueDeep = pitch(w.valueDepth), distances = S<float>::kDistances;
  return (w.type == ElementType::F64 ? 8 : 4) * (kTile * (deep + valueDeep + 2 * pitch(kTile) + results) +
                                                 S<float>::kKeyRows * (deep + valueDeep) + 2 * distances * deep);
}
/// dq, dk and dv. Scratch: a number of the type that is computed in for each query of each head.
template <typename T, typename S>
cudaError_t enqueueTileGrad(const typename S::Work &work, Compute<T> *delta, int bytes, cudaStream_t stream) {
  const AttentionWork &w = baseOf(work);
  const unsigned all = unsigned(w.batch) * w.heads;
  cudaError_t code = enqueue(sumDeltas<T>, dim3(blocksFor((long long)(all)*w.queries, kTileThreads / kWarp)),
                             kTileThreads, 0, stream, w, delta);
  if (code == cudaSuccess)
    code = enqueue(gradQueries<T, S>, dim3(all * blocksFor(w.queries, kTile)), kTileThreads, bytes, stream, work, delta);
  if (code == cudaSuccess)
    code = enqueue(gradKeys<T, S>, dim3(all * blocksFor(w.keys, kTile)), kTileThreads, bytes, stream, work, delta);
  return code;
}
template <typename T, typename S> cudaError_t prepareTileGrad() {
  const cudaError_t code = allowShared(gradQueries<T, S>);
  return code == cudaSuccess ? allowShared(gradKeys<T, S>) : code;
}

} // namespace shardc::cuda
