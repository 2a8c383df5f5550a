// SPDX-License-Identifier: Apache-2.0
// The gradient of relative_attention for every case. Each result has blocks of its own, which compute the probabilities
// that they need again from lse; so every sum has one order, and nothing is added by two blocks.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeTile.cuh"

namespace shardc::cuda {
namespace {

/// What a block has in shared memory: up to 16 queries, up to 31 keys, up to 31 distances, and `rest`.
template <typename T> struct Tile {
  using C = Compute<T>;
  const RelativeWork &work;
  const AttentionWork &w;
  const C *delta; ///< sum of dout out, for each query of each head
  const int deep, valueDeep;
  C *q, *dout, *k, *v, *posKey, *posQuery, *rest;
  Keep keep;

  __device__ Tile(const RelativeWork &work, const C *delta)
      : work(work), w(work.base), delta(delta), deep(pitch(w.depth)), valueDeep(pitch(w.valueDepth)), keep(w) {
    q = dynamicShared<C>();
    dout = q + kTile * deep;
    k = dout + kTile * valueDeep;
    v = k + kTileDistances * deep;
    posKey = v + kTileDistances * valueDeep;
    posQuery = posKey + kTileDistances * deep;
    rest = posQuery + kTileDistances * deep;
  }
  __device__ void loadQueries(int b, int h, int first) const {
    loadTile<T>(q, w.q, b, h, first, w.queries, w.depth, w.tf32);
    loadTile<T>(dout, w.dout, b, h, first, w.queries, w.valueDepth, w.tf32);
  }
  __device__ void loadKeys(int b, int h, int first) const {
    loadTile<T>(k, w.k, b, h, first, w.keys, w.depth, w.tf32);
    loadTile<T>(v, w.v, b, h, first, w.keys, w.valueDepth, w.tf32);
  }
  /// Those of 16 queries and 16 keys.
  __device__ void loadDistances(int h, int query, int key) const {
    const int low = distanceOf(w, query, key + kTile - 1);
    loadPositions<T, kTileDistances>(posKey, work.posKey, w, h, low);
    loadPositions<T, kTileDistances>(posQuery, work.posQuery, w, h, low);
  }
  /// Of query i, row y of the tile, and key j, row x, whose distance is row r: p m and ds. Zeros outside.
  __device__ void gradient(int b, int h, int i, int j, int y, int x, int r, C &dropped, C &ds) const {
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
      p = exp(relativeScore<C>(work, b, h, i, j, {q + y * deep, k + x * deep, posKey + r * deep, posQuery + r * deep}) -
              lse);
    const C m = keep.template factor<C>(b, h, i, j);
    const C dp = dot(dout + y * valueDeep, v + x * valueDeep, w.valueDepth);
    dropped = p * m;
    if (!hidden(w, b, h, i, j))
      ds = p * (m * dp - delta[((long long)(b)*w.heads + h) * w.queries + i]);
  }
};

/// A warp for each query.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) relativeDeltas(RelativeWork work, Compute<T> *delta) {
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  const long long row = blockIdx.x * (long long)(kTileThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= (long long)(w.batch) * w.heads * w.queries)
    return;
  const int i = row % w.queries, h = row / w.queries % w.heads, b = row / w.queries / w.heads;
  const T *dout = rowOf<T>(w.dout, b, h, i), *out = rowOf<T>(w.out, b, h, i);
  C sum = 0;
  for (int c = threadIdx.x % kWarp; c < w.valueDepth; c += kWarp)
    sum += C(widen(dout[c])) * C(widen(out[c]));
  sum = warpJoin(sum, Plus());
  if (threadIdx.x % kWarp == 0)
    delta[row] = sum;
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) relativeGradQueries(RelativeWork work, const Compute<T> *delta) {
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  const int tiles = (w.queries + kTile - 1) / kTile, deep = pitch(w.depth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T> tile(work, delta);
  C *ds = tile.rest, *dq = ds + kTile * pitch(kTile);
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  tile.loadQueries(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dq[y * deep + c] = 0;
  for (int begin = 0; begin < w.keys; begin += kTile) {
    tile.loadKeys(b, h, begin);
    tile.loadDistances(h, first, begin);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, first + y, begin + x, y, x, y - x + kTile - 1, dropped, one);
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dq[y * deep + c];
      for (int l = 0; l < kTile; ++l) {
        C factor = tile.k[l * deep + c];
        if (work.posKey.data)
          factor += tile.posKey[(y - l + kTile - 1) * deep + c];
        value += ds[y * pitch(kTile) + l] * factor;
      }
      dq[y * deep + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.dq, b, h, first, w.queries, w.depth, dq, C(w.scale));
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) relativeGradKeys(RelativeWork work, const Compute<T> *delta) {
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  const int tiles = (w.keys + kTile - 1) / kTile, deep = pitch(w.depth), valueDeep = pitch(w.valueDepth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T> tile(work, delta);
  C *p = tile.rest, *ds = p + kTile * pitch(kTile), *dk = ds + kTile * pitch(kTile), *dv = dk + kTile * deep;
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile; // y is the key here
  tile.loadKeys(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dk[y * deep + c] = 0;
  for (int c = x; c < w.valueDepth; c += kTile)
    dv[y * valueDeep + c] = 0;
  for (int begin = 0; begin < w.queries; begin += kTile) {
    tile.loadQueries(b, h, begin);
    tile.loadDistances(h, begin, first);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, begin + x, first + y, x, y, x - y + kTile - 1, dropped, one);
    p[y * pitch(kTile) + x] = dropped;
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dk[y * deep + c];
      for (int l = 0; l < kTile; ++l) {
        C factor = tile.q[l * deep + c];
        if (work.posQuery.data)
          factor += tile.posQuery[(l - y + kTile - 1) * deep + c];
        value += ds[y * pitch(kTile) + l] * factor;
      }
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

template <typename T>
__device__ inline void storePositions(const PositionsView &to, int h, int r, int rows, int depth, const Compute<T> *from,
                                      Compute<T> factor) {
  if (!to.data || r >= rows)
    return;
  T *row = static_cast<T *>(to.data) + r * to.row + h * to.head;
  for (int c = threadIdx.x % kTile; c < depth; c += kTile)
    row[c] = narrow<T>(from[c] * factor);
}

/// A block for 16 distances of a head, over all batches and queries: thread (y, x) has query y and distance x, and then
/// the sums of distance y.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) relativeGradPositions(RelativeWork work, const Compute<T> *delta) {
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  const int all = w.queries + w.keys - 1, tiles = (all + kTile - 1) / kTile, deep = pitch(w.depth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles;
  Tile<T> tile(work, delta);
  C *ds = tile.rest, *dKey = ds + kTile * pitch(kTile), *dQuery = dKey + kTile * deep;
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  loadPositions<T, kTile>(tile.posKey, work.posKey, w, h, first);
  loadPositions<T, kTile>(tile.posQuery, work.posQuery, w, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dKey[y * deep + c] = dQuery[y * deep + c] = 0;
  for (int b = 0; b < w.batch; ++b)
    for (int begin = 0; begin < w.queries; begin += kTile) {
      // Query y and distance x meet key low + y - x + 15.
      const int low = begin - (first + kTile - 1) + w.keys - 1;
      if (low >= w.keys || low + 2 * kTile - 2 < 0)
        continue;
      tile.loadQueries(b, h, begin);
      for (int r = y; r < kTileDistances; r += kTile) {
        const bool real = low + r >= 0 && low + r < w.keys;
        const T *key = rowOf<T>(w.k, b, h, low + r), *value = rowOf<T>(w.v, b, h, low + r);
        for (int c = x; c < w.depth; c += kTile)
          tile.k[r * deep + c] = real ? productOperand(key[c], w.tf32) : C(0);
        for (int c = x; c < w.valueDepth; c += kTile)
          tile.v[r * tile.valueDeep + c] = real ? productOperand(value[c], w.tf32) : C(0);
      }
      __syncthreads();
      const int row = y - x + kTile - 1;
      C dropped, one;
      tile.gradient(b, h, begin + y, low + row, y, row, x, dropped, one);
      ds[y * pitch(kTile) + x] = one;
      __syncthreads();
      for (int c = x; c < w.depth; c += kTile) {
        C toKey = dKey[y * deep + c], toQuery = dQuery[y * deep + c];
        for (int l = 0; l < kTile; ++l) {
          const C factor = ds[l * pitch(kTile) + y];
          toKey += factor * tile.q[l * deep + c];
          toQuery += factor * tile.k[(l - y + kTile - 1) * deep + c];
        }
        dKey[y * deep + c] = toKey, dQuery[y * deep + c] = toQuery;
      }
      __syncthreads();
    }
  storePositions<T>(work.dposKey, h, first + y, all, w.depth, dKey + y * deep, C(w.scale));
  storePositions<T>(work.dposQuery, h, first + y, all, w.depth, dQuery + y * deep, C(w.scale));
}

template <typename T> cudaError_t enqueueTyped(const RelativeWork &work, void *scratch, cudaStream_t stream) {
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  C *delta = static_cast<C *>(scratch);
  const unsigned all = unsigned(w.batch) * w.heads;
  const int bytes = relativeGradShared(work);
  cudaError_t code = enqueue(relativeDeltas<T>, dim3(blocksFor((long long)(all)*w.queries, kTileThreads / kWarp)),
                             kTileThreads, 0, stream, work, delta);
  if (code == cudaSuccess)
    code = enqueue(relativeGradQueries<T>, dim3(all * blocksFor(w.queries, kTile)), kTileThreads, bytes, stream, work,
                   delta);
  if (code == cudaSuccess)
    code =
        enqueue(relativeGradKeys<T>, dim3(all * blocksFor(w.keys, kTile)), kTileThreads, bytes, stream, work, delta);
  if (code == cudaSuccess && (work.posKey.data || work.posQuery.data))
    code = enqueue(relativeGradPositions<T>, dim3(w.heads * blocksFor(w.queries + w.keys - 1, kTile)), kTileThreads,
                   bytes, stream, work, delta);
  return code;
}

} // namespace

int relativeGradShared(const RelativeWork &work) {
  const AttentionWork &w = work.base;
  return (w.type == kF64 ? 8 : 4) *
         (kTile * (3 * pitch(w.depth) + 2 * pitch(w.valueDepth) + 2 * pitch(kTile)) +
          kTileDistances * (3 * pitch(w.depth) + pitch(w.valueDepth)));
}

cudaError_t prepareRelativeGrad(const RelativeWork &work) {
  return withFloat(work.base.type, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    cudaError_t code = allowShared(relativeGradQueries<T>);
    if (code == cudaSuccess)
      code = allowShared(relativeGradKeys<T>);
    return code == cudaSuccess ? allowShared(relativeGradPositions<T>) : code;
  });
}

cudaError_t enqueueRelativeGrad(const RelativeWork &work, void *scratch, cudaStream_t stream) {
  return withFloat(work.base.type, [&](auto *type) {
    return enqueueTyped<std::remove_pointer_t<decltype(type)>>(work, scratch, stream);
  });
}

} // namespace shardc::cuda
