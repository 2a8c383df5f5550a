// SPDX-License-Identifier: Apache-2.0
// The gradient of relative_attention for every case, with those of the positions.
#include "runtime/cuda/AttentionTileBackward.cuh"
#include "runtime/cuda/RelativeTile.cuh"

namespace shardc::cuda {
namespace {

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
  awaitStream();
  using C = Compute<T>;
  const AttentionWork &w = work.base;
  const int all = w.queries + w.keys - 1, tiles = (all + kTile - 1) / kTile, deep = pitch(w.depth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles;
  Tile<T, DistanceScores<T>> tile(work, delta);
  C *ds = tile.rest, *dKey = ds + kTile * pitch(kTile), *dQuery = dKey + kTile * deep;
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  loadPositions<T, kTile>(tile.scores.posKey, work.posKey, w, h, first);
  loadPositions<T, kTile>(tile.scores.posQuery, work.posQuery, w, h, first);
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

} // namespace

int relativeGradShared(const RelativeWork &work) {
  return tileGradShared<DistanceScores>(work.base, 2 * pitch(work.base.depth) + pitch(work.base.valueDepth));
}

cudaError_t prepareRelativeGrad(const RelativeWork &work) {
  return withFloat(work.base.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    const cudaError_t code = prepareTileGrad<T, DistanceScores<T>>();
    return code == cudaSuccess ? allowShared(relativeGradPositions<T>) : code;
  });
}

cudaError_t enqueueRelativeGrad(const RelativeWork &work, void *scratch, cudaStream_t stream) {
  const AttentionWork &w = work.base;
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    auto *delta = static_cast<Compute<T> *>(scratch);
    const int bytes = relativeGradShared(work);
    const cudaError_t code = enqueueTileGrad<T, DistanceScores<T>>(work, delta, bytes, stream);
    if (code != cudaSuccess || !(work.posKey.data || work.posQuery.data))
      return code;
    return enqueue(relativeGradPositions<T>, dim3(w.heads * blocksFor(w.queries + w.keys - 1, kTile)), kTileThreads,
                   bytes, stream, work, delta);
  });
}

} // namespace shardc::cuda
