// SPDX-License-Identifier: Apache-2.0
// The gradient sorts the ids (stable, so that rows of dy are added in the order of the ids), then sums pieces of kPiece
// sorted positions. A run of equal ids inside one piece is finished there; one that crosses pieces leaves partial sums,
// which are added in order.
#include "runtime/cuda/Embedding.h"
#include "ir/base/Workspace.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/Index.cuh"
#include "runtime/cuda/SortPairs.h"

namespace shardc::cuda {
namespace {

constexpr int kThreads = 128, kPiece = int(kIdsPerPiece);

template <typename Unit> __global__ void __launch_bounds__(kThreads) copyRows(EmbeddingWork w) {
  awaitStream();
  __shared__ long long row;
  const long long i = blockIdx.x;
  if (threadIdx.x == 0)
    row = wrapped(w.ids.operand, i, w.ids.rows);
  __syncthreads();
  if (w.ids.rows == 0)
    return;
  const Unit *from = reinterpret_cast<const Unit *>(static_cast<const char *>(w.table) + row * w.rowStride);
  Unit *to = reinterpret_cast<Unit *>(static_cast<char *>(w.to) + i * w.rowBytes);
  for (long long u = threadIdx.x; u < w.rowBytes / (long long)sizeof(Unit); u += kThreads)
    to[u] = from[u];
}

__global__ void __launch_bounds__(kThreads) listIds(EmbeddingIds ids, int *keys, int *positions) {
  awaitStream();
  const long long i = blockIdx.x * (long long)(kThreads) + threadIdx.x;
  if (i >= ids.count)
    return;
  keys[i] = int(wrapped(ids.operand, i, ids.rows));
  positions[i] = int(i);
}

template <typename C> __device__ inline void finish(const EmbeddingGradWork &w, int key, long long column, C sum) {
  const long long at = key * w.width + column;
  store(w.table, at, w.accumulate ? load<C>(w.table, at) + sum : sum);
}

/// partial[piece][0]: of the run that came from the piece before; [1]: of the run that begins here and goes on.
template <typename T, typename C>
__global__ void __launch_bounds__(kThreads)
    addPieces(EmbeddingGradWork w, const int *keys, const int *positions, C *partial) {
  awaitStream();
  const long long column = blockIdx.y * (long long)(kThreads) + threadIdx.x, piece = blockIdx.x;
  if (column >= w.width)
    return;
  const T *dy = static_cast<const T *>(w.dy);
  const long long begin = piece * kPiece, end = begin + kPiece < w.ids.count ? begin + kPiece : w.ids.count;
  bool beganBefore = begin > 0 && keys[begin - 1] == keys[begin];
  C sum = 0;
  for (long long p = begin; p < end; ++p) {
    const int key = keys[p];
    sum += C(widen(dy[positions[p] * w.width + column]));
    const bool runEnds = p + 1 == w.ids.count || keys[p + 1] != key;
    if (!runEnds && p + 1 < end)
      continue;
    if (beganBefore)
      partial[(2 * piece) * w.width + column] = sum;
    else if (!runEnds)
      partial[(2 * piece + 1) * w.width + column] = sum;
    else
      finish(w, key, column, sum);
    sum = 0;
    beganBefore = false;
  }
}

/// The first position from `begin` on whose key is not that of `begin`, in sorted keys.
__device__ inline long long endOfRun(const int *keys, long long begin, long long count) {
  long long low = begin, high = count; // keys[low] == keys[begin]; high is beyond the run
  while (high - low > 1) {
    const long long middle = (low + high) / 2;
    (keys[middle] == keys[begin] ? low : high) = middle;
  }
  return high;
}

/// Of each run that crosses pieces, by the block of the piece that it begins in: `columns` columns beside each other, the rest
/// of the block's threads share a column's partial sums.
template <typename C>
__global__ void __launch_bounds__(kThreads)
    joinPieces(EmbeddingGradWork w, const int *keys, const C *partial, int columns) {
  awaitStream();
  __shared__ C sums[kThreads];
  const long long piece = blockIdx.x, begin = piece * kPiece, next = begin + kPiece;
  if (next >= w.ids.count || keys[next - 1] != keys[next])
    return;
  const int key = keys[next], part = threadIdx.x / columns, parts = kThreads / columns;
  if (begin > 0 && keys[begin - 1] == key)
    return;
  const long long column = blockIdx.y * (long long)(columns) + threadIdx.x % columns;
  const long long last = (endOfRun(keys, next, w.ids.count) - 1) / kPiece;
  C sum = 0;
  if (column < w.width) {
    if (part == 0)
      sum = partial[(2 * piece + 1) * w.width + column];
#pragma unroll 8
    for (long long p = piece + 1 + part; p <= last; p += parts)
      sum += partial[(2 * p) * w.width + column];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (part || column >= w.width)
    return;
  for (int other = 1; other < parts; ++other)
    sum += sums[other * columns + threadIdx.x];
  finish(w, key, column, sum);
}

/// Where things lie in scratch memory.
struct Layout {
  long long keys, positions, sortedKeys, sortedPositions, partial, sort, bytes;
  size_t sortBytes = 0;
  cudaError_t code;

  explicit Layout(const EmbeddingGradWork &w) {
    const long long n = w.ids.count, pieces = (n + kPiece - 1) / kPiece;
    code = sortPairsScratch(int(n), sortBytes);
    long long end = 0;
    auto take = [&](long long bytes) {
      long long at = end;
      end += (bytes + 255) / 256 * 256;
      return at;
    };
    keys = take(4 * n), positions = take(4 * n), sortedKeys = take(4 * n), sortedPositions = take(4 * n);
    partial = take(2 * pieces * w.width * (w.type == ElementType::F64 ? 8 : 4));
    sort = take((long long)sortBytes);
    bytes = end;
  }
};

int bitsOf(long long rows) {
  int bits = 1;
  while (bits < 31 && (1ll << bits) < rows)
    ++bits;
  return bits;
}

} // namespace

cudaError_t enqueueEmbedding(const EmbeddingWork &w, void *, cudaStream_t stream) {
  return withBytes(w.unit, [&](auto *unit) {
    return enqueue(copyRows<Pointee<decltype(unit)>>, dim3(unsigned(w.ids.count)), kThreads, 0, stream, w);
  });
}

cudaError_t embeddingGradScratch(const EmbeddingGradWork &w, long long &bytes) {
  Layout layout(w);
  bytes = layout.bytes;
  return layout.code;
}

cudaError_t enqueueEmbeddingGrad(const EmbeddingGradWork &w, void *scratch, cudaStream_t stream) {
  if (!w.accumulate && w.tableBytes)
    if (cudaError_t code = cudaMemsetAsync(w.table.data, 0, w.tableBytes, stream); code != cudaSuccess)
      return code;
  if (w.ids.count == 0)
    return cudaSuccess;
  Layout layout(w);
  if (layout.code != cudaSuccess)
    return layout.code;
  char *base = static_cast<char *>(scratch);
  auto ints = [&](long long at) { return reinterpret_cast<int *>(base + at); };
  int *keys = ints(layout.sortedKeys), *positions = ints(layout.sortedPositions);
  cudaError_t code = enqueue(listIds, dim3(blocksFor(w.ids.count, kThreads)), kThreads, 0, stream, w.ids,
                             ints(layout.keys), ints(layout.positions));
  if (code != cudaSuccess || w.ids.rows == 0 || w.width == 0)
    return code;
  code = sortPairs(base + layout.sort, layout.sortBytes, ints(layout.keys), keys, ints(layout.positions), positions,
                   int(w.ids.count), bitsOf(w.ids.rows), stream);
  if (code != cudaSuccess)
    return code;
  const dim3 grid(blocksFor(w.ids.count, kPiece), blocksFor(w.width, kThreads));
  return withFloat(w.type, [&](auto *type) {
    using T = Pointee<decltype(type)>;
    using C = Compute<T>;
    C *partial = reinterpret_cast<C *>(base + layout.partial);
    if (cudaError_t failed = enqueue(addPieces<T, C>, grid, kThreads, 0, stream, w, keys, positions, partial);
        failed != cudaSuccess)
      return failed;
    int columns = kThreads;
    while (columns > 1 && columns / 2 >= w.width)
      columns /= 2;
    return enqueue(joinPieces<C>, dim3(grid.x, blocksFor(w.width, columns)), kThreads, 0, stream, w, keys, partial,
                   columns);
  });
}

} // namespace shardc::cuda
