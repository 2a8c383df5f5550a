// SPDX-License-Identifier: Apache-2.0
// Attention for every case, over any scores: a block for 16 queries of a head, which walks over the keys with a running
// softmax. `S` has the members of PlainScores.
#pragma once

#include "runtime/cuda/AttentionTile.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {

/// Over the 16 threads that share a row of the tile.
template <typename C, typename Join> __device__ inline C rowJoin(C x, Join join) {
  for (int step = kTile / 2; step; step /= 2)
    x = join(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

template <typename T, typename S> __global__ void __launch_bounds__(kTileThreads) attend(typename S::Work work) {
  awaitStream();
  using C = Compute<T>;
  const AttentionWork &w = baseOf(work);
  const int tiles = (w.queries + kTile - 1) / kTile, deep = pitch(w.depth), valueDeep = pitch(w.valueDepth);
  const int first = blockIdx.x % tiles * kTile, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  C *q = dynamicShared<C>(), *k = q + kTile * deep, *v = k + kTile * deep, *out = v + kTile * valueDeep;
  C *p = out + kTile * valueDeep;
  const S scores(work, p + kTile * pitch(kTile));
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile, i = first + y;
  const Keep keep(w);
  loadTile<T>(q, w.q, b, h, first, w.queries, w.depth, w.tf32);
  for (int c = x; c < w.valueDepth; c += kTile)
    out[y * valueDeep + c] = 0;
  C top = C(-INFINITY), sum = 0;
  for (int begin = 0; begin < w.keys; begin += kTile) {
    loadTile<T>(k, w.k, b, h, begin, w.keys, w.depth, w.tf32);
    loadTile<T>(v, w.v, b, h, begin, w.keys, w.valueDepth, w.tf32);
    scores.loadDistances(h, first, begin);
    __syncthreads();
    const int j = begin + x;
    const bool inside = i < w.queries && j < w.keys;
    const C score = inside ? scores.score(b, h, i, j, q + y * deep, k + x * deep, distanceRow(y, x)) : C(-INFINITY);
    const C highest = rowJoin(score, [](C a, C b) { return a > b ? a : b; });
    const C newTop = highest > top ? highest : top;
    // A row of -inf gives exponentials of 0 and not NaN.
    const C finite = newTop == C(-INFINITY) ? C(0) : newTop;
    const C shrink = top == C(-INFINITY) ? C(0) : C(exp(top - finite)), e = inside ? C(exp(score - finite)) : C(0);
    sum = sum * shrink + rowJoin(e, Plus());
    top = newTop;
    p[y * pitch(kTile) + x] = inside ? e * keep.factor<C>(b, h, i, j) : C(0);
    __syncwarp(); // a row of the tile is one half of a warp
    for (int c = x; c < w.valueDepth; c += kTile) {
      C value = out[y * valueDeep + c] * shrink;
      for (int l = 0; l < kTile; ++l)
        value += p[y * pitch(kTile) + l] * v[l * valueDeep + c];
      out[y * valueDeep + c] = value;
    }
    __syncthreads();
  }
  storeTile<T>(w.out, b, h, first, w.queries, w.valueDepth, out, sum == 0 ? C(0) : 1 / sum);
  if (x == 0 && i < w.queries)
    store(w.lse, b * w.lseBatch + h * w.lseHead + i, (top == C(-INFINITY) ? C(0) : top) + C(log(sum)));
}

/// Bytes of shared memory that a block wants.
template <template <typename> class S> int attendShared(const AttentionWork &w) {
  return (w.type == ElementType::F64 ? 8 : 4) *
         (kTile * (2 * pitch(w.depth) + 2 * pitch(w.valueDepth) + pitch(kTile)) +
          2 * S<float>::kDistances * pitch(w.depth));
}
template <template <typename> class S> cudaError_t prepareAttend(const AttentionWork &w) {
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    return allowShared(attend<T, S<T>>);
  });
}
template <template <typename> class S, typename Work> cudaError_t enqueueAttend(const Work &work, cudaStream_t stream) {
  const AttentionWork &w = baseOf(work);
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    const dim3 grid(unsigned(w.batch) * w.heads * blocksFor(w.queries, kTile));
    return enqueue(attend<T, S<T>>, grid, kTileThreads, attendShared<S>(w), stream, work);
  });
}

} // namespace shardc::cuda
