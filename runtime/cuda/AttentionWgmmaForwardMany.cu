// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit heads of 64 elements to more than 128 keys, by warpgroups: a running softmax over tiles of 128
// keys.
#include "runtime/cuda/AttentionWgmmaSoftmax.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// In shared memory: q of two batches, whose place out takes; two pairs of tiles of k and v; the barriers, the bias.
constexpr int kPairs = 2 * kWgTile, kBarriers = kPairs + 4 * kWgTile, kBias = kBarriers + 1024;

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kWgThreads, 1)
    attendMany(const __grid_constant__ AttentionWork w, const __grid_constant__ AttendMaps maps, int chunks) {
  awaitStream();
  char *shared = alignedShared();
  uint64_t *arrived = reinterpret_cast<uint64_t *>(shared + kBarriers);
  const WgWork work(w, chunks);
  const int h = work.head, firstRow = blockIdx.y * kWgRows, group = warpgroup(), lane = threadIdx.x % kWarp;
  const int own = firstRow + group * 64, rowOfWarp = own + threadIdx.x / kWarp % 4 * 16;
  const int rows[2] = {min(rowOfWarp + lane / 4, w.queries - 1), min(rowOfWarp + lane / 4 + 8, w.queries - 1)};
  const int tiles = (w.keys + kWgRows - 1) / kWgRows, items = (work.end - work.begin) * tiles;
  auto batchOf = [&](int item) { return work.begin + item / tiles; };
  auto queriesOf = [&](int item) { return shared + item / tiles % 2 * kWgTile; };
  auto keysOf = [&](int item) { return shared + kPairs + item % 2 * 2 * kWgTile; };
  auto begin = [&](int item) { // one thread
    const int b = batchOf(item), tile = item % tiles;
    uint64_t *barrier = arrived + item % 2;
    expectBytes(barrier, (tile ? 2 : 3) * kWgTile);
    if (tile == 0)
      loadTile(queriesOf(item), maps.q, firstRow, h, b, barrier);
    loadTile(keysOf(item), maps.k, tile * kWgRows, h, b, barrier);
    loadTile(keysOf(item) + kWgTile, maps.v, tile * kWgRows, h, b, barrier);
  };
  char *bias = shared + kBias + group * 8192;
  auto beginBias = [&](int item) {
    copyBias<T>(bias, w, batchOf(item), h, own, item % tiles * kWgRows);
    copyBias<T>(bias + kWgTile, w, batchOf(item), h, own, item % tiles * kWgRows + 64);
  };
  if (items <= 0)
    return;
  if (threadIdx.x == 0) {
    beginArrivals(arrived);
    beginArrivals(arrived + 1);
    begin(0);
  }
  if (w.bias.array.data) {
    beginBias(0);
    waitForCopies();
  }
  __syncthreads();
  const float one[2] = {1, 1};
  float out[8][4], top[2], sum[2];
  for (int item = 0; item < items; ++item) {
    const int b = batchOf(item), tile = item % tiles, firstKey = tile * kWgRows;
    WgMask<4> mask;
    mask.begin(w, b, h, firstKey);
    waitForBytes(arrived + item % 2, item / 2);
    float p[kWgBlocks][4];
    beginProducts();
    {
      const uint64_t left = matrixAt(queriesOf(item) + group * 8192), right = matrixAt(keysOf(item));
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
      commitProducts();
    }
    if (threadIdx.x == 0 && item + 1 < items) {
      waitForStores();
      begin(item + 1);
    }
    mask.beginRows(w, b, h, rows, firstKey);
    mask.arrange(w);
    waitForProducts<0>();
    pinned(p);
    makeScores<T>(p, w, bias, mask, w.keys - firstKey);
    if (w.bias.array.data && item + 1 < items) {
      meet(1 + group, kWarpgroup);
      beginBias(item + 1);
    }
    float shift[2], shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float before = tile ? top[half] : -INFINITY;
      top[half] = fmaxf(before, highestOf(p, half));
      shift[half] = top[half] == -INFINITY ? 0.0f : top[half]; // a row of -inf gives exponentials of 0 and not NaN
      shrink[half] = before == -INFINITY ? 0.0f : exp2Fast((before - shift[half]) * kLog2E);
    }
    float added[2];
    makeExponentials(p, shift, added);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = (tile ? sum[half] * shrink[half] : 0.0f) + added[half];
    if constexpr (kDrops)
      dropSome(p, w, b, h, rows, firstKey);
    uint32_t packed[kWgBlocks / 2][4];
    packRows<T>(packed, p, one);
    if (tile) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          out[n][e] *= shrink[e / 2];
    }
    pinned(out);
    beginProducts();
    const uint64_t values = matrixAt(keysOf(item) + kWgTile);
#pragma unroll
    for (int j = 0; j < kWgRows / 16; ++j)
      multiply<T, true>(out, packed[j], further(values, j * 2048), j > 0 || tile > 0);
    commitProducts();
    waitForCopies();
    waitForProducts<0>();
    pinned(out);
    __syncthreads(); // all have used up the tiles
    if (tile + 1 < tiles)
      continue;
    float factor[2], lse[2];
    finishSums(factor, lse, shift, sum);
    storeSums(w, b, h, rowOfWarp, lse);
    uint32_t result[4][4];
    packRows<T>(result, out, factor);
    keepPacked(queriesOf(item) + group * 8192, result);
    showToProducts();
    if (threadIdx.x >= kWarp) {
      pass(3, kWgThreads);
      continue;
    }
    meet(3, kWgThreads);
    if (threadIdx.x == 0) {
      storeTile(maps.out, queriesOf(item), firstRow, h, b);
      commitStores();
    }
    __syncwarp();
  }
  if (threadIdx.x == 0)
    waitForStores();
}

} // namespace

cudaError_t prepareAttentionWgMany(const AttentionWork &w) {
  return withDrops(
      w, [&](auto type, auto drops) { return allowShared(attendMany<decltype(type), decltype(drops)::value>); });
}

cudaError_t enqueueAttentionWgMany(const AttentionWork &w, cudaStream_t stream) {
  AttendMaps maps;
  if (cudaError_t code = describe(maps, w); code != cudaSuccess)
    return code;
  const int chunks = chunksFor(w, w.queries), bytes = kBias + (w.bias.array.data ? 2 * kWgTile : 0);
  const dim3 grid(w.heads * chunks, blocksFor(w.queries, kWgRows));
  return withDrops(w, [&](auto type, auto drops) {
    return enqueue(attendMany<decltype(type), decltype(drops)::value>, grid, kWgThreads, bytes, stream, w, maps,
                   chunks);
  });
}

} // namespace shardc::cuda
