// SPDX-License-Identifier: Apache-2.0
// The gradient of attention for every case. Each result has blocks of its own, which compute the probabilities that
// they need again from lse; so every sum has one order, and nothing is added by two blocks.
#include "runtime/cuda/AttentionTile.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// A tile of a head: what is in shared memory, and the gradient of one score a thread.
template <typename T> struct Tile {
  using C = Compute<T>;
  const AttentionWork &w;
  const C *delta; ///< sum of dout out, for each query of each head
  C *q, *dout, *k, *v, *rest;
  Keep keep;

  __device__ Tile(const AttentionWork &w, const C *delta) : w(w), delta(delta), keep(w) {
    q = dynamicShared<C>();
    dout = q + kTile * pitch(w.depth);
    k = dout + kTile * pitch(w.valueDepth);
    v = k + kTile * pitch(w.depth);
    rest = v + kTile * pitch(w.valueDepth);
  }
  __device__ void loadQueries(int b, int h, int first) const {
    loadTile<T>(q, w.q, b, h, first, w.queries, w.depth, w.tf32);
    loadTile<T>(dout, w.dout, b, h, first, w.queries, w.valueDepth, w.tf32);
  }
  __device__ void loadKeys(int b, int h, int first) const {
    loadTile<T>(k, w.k, b, h, first, w.keys, w.depth, w.tf32);
    loadTile<T>(v, w.v, b, h, first, w.keys, w.valueDepth, w.tf32);
  }
  /// Of query y and key x of the tile, which are i and j of the head: p m and ds, or ds as the bias sees it. Zeros
  /// outside.
  __device__ void gradient(int b, int h, int i, int j, int y, int x, C &dropped, C &ds, bool ofBias = false) const {
    dropped = ds = 0;
    if (i >= w.queries || j >= w.keys)
      return;
    const C lse = load<C>(w.lse, b * w.lseBatch + h * w.lseHead + i);
    C p;
    if (lse == C(-INFINITY))
      p = 0;
    else if (lse < C(kMaskedLse)) // adding log(n) to the lowest float is lost: all scores are equal
      p = C(1) / C(w.keys);
    else
      p = exp(scoreOf(w, b, h, i, j, q + y * pitch(w.depth), k + x * pitch(w.depth)) - lse);
    const C m = keep.template factor<C>(b, h, i, j);
    const C dp = dot(dout + y * pitch(w.valueDepth), v + x * pitch(w.valueDepth), w.valueDepth);
    dropped = p * m;
    if ((w.maskAdds && !ofBias) || !hidden(w, b, h, i, j))
      ds = p * (m * dp - delta[((long long)(b)*w.heads + h) * w.queries + i]);
  }
};

/// A warp for each query.
template <typename T> __global__ void __launch_bounds__(kTileThreads) sumDeltas(AttentionWork w, Compute<T> *delta) {
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

template <typename T>
__global__ void __launch_bounds__(kTileThreads) gradQueries(AttentionWork w, const Compute<T> *delta) {
  using C = Compute<T>;
  const int tiles = (w.queries + kTile - 1) / kTile;
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T> tile(w, delta);
  C *ds = tile.rest, *dq = ds + kTile * pitch(kTile);
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  tile.loadQueries(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dq[y * pitch(w.depth) + c] = 0;
  for (int begin = 0; begin < w.keys; begin += kTile) {
    tile.loadKeys(b, h, begin);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, first + y, begin + x, y, x, dropped, one);
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dq[y * pitch(w.depth) + c];
      for (int l = 0; l < kTile; ++l)
        value += ds[y * pitch(kTile) + l] * tile.k[l * pitch(w.depth) + c];
      dq[y * pitch(w.depth) + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.dq, b, h, first, w.queries, w.depth, dq, C(w.scale));
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) gradKeys(AttentionWork w, const Compute<T> *delta) {
  using C = Compute<T>;
  const int tiles = (w.keys + kTile - 1) / kTile;
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  Tile<T> tile(w, delta);
  C *p = tile.rest, *ds = p + kTile * pitch(kTile), *dk = ds + kTile * pitch(kTile), *dv = dk + kTile * pitch(w.depth);
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile; // y is the key here
  tile.loadKeys(b, h, first);
  for (int c = x; c < w.depth; c += kTile)
    dk[y * pitch(w.depth) + c] = 0;
  for (int c = x; c < w.valueDepth; c += kTile)
    dv[y * pitch(w.valueDepth) + c] = 0;
  for (int begin = 0; begin < w.queries; begin += kTile) {
    tile.loadQueries(b, h, begin);
    __syncthreads();
    C dropped, one;
    tile.gradient(b, h, begin + x, first + y, x, y, dropped, one);
    p[y * pitch(kTile) + x] = dropped;
    ds[y * pitch(kTile) + x] = one;
    __syncwarp();
    for (int c = x; c < w.depth; c += kTile) {
      C value = dk[y * pitch(w.depth) + c];
      for (int l = 0; l < kTile; ++l)
        value += ds[y * pitch(kTile) + l] * tile.q[l * pitch(w.depth) + c];
      dk[y * pitch(w.depth) + c] = value;
    }
    for (int c = x; c < w.valueDepth; c += kTile) {
      C value = dv[y * pitch(w.valueDepth) + c];
      for (int l = 0; l < kTile; ++l)
        value += p[y * pitch(kTile) + l] * tile.dout[l * pitch(w.valueDepth) + c];
      dv[y * pitch(w.valueDepth) + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.dk, b, h, first, w.keys, w.depth, dk, C(w.scale));
  storeTile<T>(w.dv, b, h, first, w.keys, w.valueDepth, dv, C(1));
}

/// What a block of dbias owns of one dim, and what it sums over: all of a dim in which the bias is broadcast.
struct Span {
  int begin, end;
  __device__ Span(long long stride, int index, int each, int size) {
    begin = stride ? index * each : 0;
    end = stride ? (begin + each < size ? begin + each : size) : size;
  }
};

/// Blocks: batches x heads x tiles of queries x tiles of keys, each 1 where the bias is broadcast.
__host__ __device__ inline int ownParts(long long stride, int parts) { return stride ? parts : 1; }

template <typename T>
__global__ void __launch_bounds__(kTileThreads) gradBias(AttentionWork w, const Compute<T> *delta) {
  using C = Compute<T>;
  const long long *s = w.dbias.strides;
  unsigned block = blockIdx.x;
  auto take = [&](unsigned parts) {
    const unsigned index = block % parts;
    block /= parts;
    return int(index);
  };
  const Span keys(s[3], take(ownParts(s[3], (w.keys + kTile - 1) / kTile)), kTile, w.keys);
  const Span queries(s[2], take(ownParts(s[2], (w.queries + kTile - 1) / kTile)), kTile, w.queries);
  const Span heads(s[1], take(ownParts(s[1], w.heads)), 1, w.heads);
  const Span batches(s[0], take(ownParts(s[0], w.batch)), 1, w.batch);
  Tile<T> tile(w, delta);
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  C sum = 0;
  for (int b = batches.begin; b < batches.end; ++b)
    for (int h = heads.begin; h < heads.end; ++h)
      for (int i = queries.begin; i < queries.end; i += kTile)
        for (int j = keys.begin; j < keys.end; j += kTile) {
          tile.loadQueries(b, h, i);
          tile.loadKeys(b, h, j);
          __syncthreads();
          C dropped, one;
          tile.gradient(b, h, i + y, j + x, y, x, dropped, one, true);
          sum += one;
          __syncthreads();
        }
  // Now over the dims of the tile in which the bias is broadcast.
  C *room = tile.rest;
  room[y * pitch(kTile) + x] = sum;
  __syncthreads();
  if ((s[2] == 0 && y > 0) || (s[3] == 0 && x > 0))
    return;
  C total = 0;
  for (int r = y; r < (s[2] ? y + 1 : kTile); ++r)
    for (int c = x; c < (s[3] ? x + 1 : kTile); ++c)
      total += room[r * pitch(kTile) + c];
  const int i = queries.begin + y, j = keys.begin + x;
  if (i < w.queries && j < w.keys)
    store(w.dbias.array, batches.begin * s[0] + heads.begin * s[1] + i * s[2] + j * s[3], total);
}

template <typename T> cudaError_t enqueueTyped(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  using C = Compute<T>;
  C *delta = static_cast<C *>(scratch);
  const unsigned all = unsigned(w.batch) * w.heads;
  const int bytes = attentionGradShared(w);
  const unsigned queryTiles = blocksFor(w.queries, kTile), keyTiles = blocksFor(w.keys, kTile);
  cudaError_t code = enqueue(sumDeltas<T>, dim3(blocksFor((long long)(all)*w.queries, kTileThreads / kWarp)),
                             kTileThreads, 0, stream, w, delta);
  if (code == cudaSuccess)
    code = enqueue(gradQueries<T>, dim3(all * queryTiles), kTileThreads, bytes, stream, w, delta);
  if (code == cudaSuccess)
    code = enqueue(gradKeys<T>, dim3(all * keyTiles), kTileThreads, bytes, stream, w, delta);
  return code != cudaSuccess || !w.dbias.array.data ? code : enqueueAttentionBiasGrad(w, delta, stream);
}

} // namespace

int attentionGradShared(const AttentionWork &w) {
  return (w.type == kF64 ? 8 : 4) * kTile * (3 * pitch(w.depth) + 3 * pitch(w.valueDepth) + 2 * pitch(kTile));
}

cudaError_t prepareAttentionGrad(const AttentionWork &w) {
  return withFloat(w.type, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    cudaError_t code = allowShared(gradQueries<T>);
    if (code == cudaSuccess)
      code = allowShared(gradKeys<T>);
    return code == cudaSuccess ? allowShared(gradBias<T>) : code;
  });
}

cudaError_t enqueueAttentionGrad(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  return withFloat(w.type,
                   [&](auto *type) { return enqueueTyped<std::remove_pointer_t<decltype(type)>>(w, scratch, stream); });
}

cudaError_t enqueueAttentionBiasGrad(const AttentionWork &w, const void *deltas, cudaStream_t stream) {
  const long long *s = w.dbias.strides;
  const unsigned blocks = ownParts(s[0], w.batch) * ownParts(s[1], w.heads) *
                          ownParts(s[2], blocksFor(w.queries, kTile)) * ownParts(s[3], blocksFor(w.keys, kTile));
  return withFloat(w.type, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return enqueue(gradBias<T>, dim3(blocks), kTileThreads, attentionGradShared(w), stream, w,
                   static_cast<const Compute<T> *>(deltas));
  });
}

} // namespace shardc::cuda
