// SPDX-License-Identifier: Apache-2.0
// The gradient of attention for every case, with that of the bias.
#include "runtime/cuda/AttentionTileBackward.cuh"

namespace shardc::cuda {
namespace {

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
  awaitStream();
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
  Tile<T, PlainScores<T>> tile(w, delta);
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
          tile.gradient(b, h, i + y, j + x, y, x, 0, dropped, one, true);
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

} // namespace

int attentionGradShared(const AttentionWork &w) {
  return tileGradShared<PlainScores>(w, pitch(w.depth) + pitch(w.valueDepth));
}

cudaError_t prepareAttentionGrad(const AttentionWork &w) {
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    const cudaError_t code = prepareTileGrad<T, PlainScores<T>>();
    return code == cudaSuccess ? allowShared(gradBias<T>) : code;
  });
}

cudaError_t enqueueAttentionGrad(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  const cudaError_t code = withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    return enqueueTileGrad<T, PlainScores<T>>(w, static_cast<Compute<T> *>(scratch), attentionGradShared(w), stream);
  });
  return code != cudaSuccess || !w.dbias.array.data ? code : enqueueAttentionBiasGrad(w, scratch, stream);
}

cudaError_t enqueueAttentionBiasGrad(const AttentionWork &w, const void *deltas, cudaStream_t stream) {
  const long long *s = w.dbias.strides;
  const unsigned blocks = ownParts(s[0], w.batch) * ownParts(s[1], w.heads) *
                          ownParts(s[2], blocksFor(w.queries, kTile)) * ownParts(s[3], blocksFor(w.keys, kTile));
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    return enqueue(gradBias<T>, dim3(blocks), kTileThreads, attentionGradShared(w), stream, w,
                   static_cast<const Compute<T> *>(deltas));
  });
}

} // namespace shardc::cuda
