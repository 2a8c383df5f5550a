// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit heads of 64 elements to at most 128 keys, by warpgroups: each of two has 64 queries.
// Probabilities are rounded to 16 bits for their product with v. Two blocks work on a multiprocessor at a time.
#include "runtime/cuda/AttentionWgmmaSoftmax.cuh"
#include "runtime/cuda/Enqueue.cuh"
namespace shardc::cuda {
namespace {

/// In shared memory: q, k, v, out of two batches, the barriers, the bias.
constexpr int kBarriers = 5 * kWgTile, kBias = kBarriers + 1024;

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kWgThreads, 2)
    attendWgmma(const __grid_constant__ AttentionWork w, const __grid_constant__ AttendMaps maps, int chunks) {
  awaitStream();
  char *q = alignedShared(), *k = q + kWgTile, *v = k + kWgTile, *results = v + kWgTile;
  uint64_t *scoresArrived = reinterpret_cast<uint64_t *>(q + kBarriers), *valuesArrived = scoresArrived + 1;
  const WgWork work(w, chunks);
  const int h = work.head, first = blockIdx.y * kWgRows, group = warpgroup(), lane = threadIdx.x % kWarp;
  const int own = first + group * 64, rowOfWarp = own + threadIdx.x / kWarp % 4 * 16;
  const int rows[2] = {min(rowOfWarp + lane / 4, w.queries - 1), min(rowOfWarp + lane / 4 + 8, w.queries - 1)};
  char *bias = q + kBias + group * 8192;
  const bool biasStays = w.bias.strides[0] == 0;
  const bool firstWarp = threadIdx.x % kWarpgroup < kWarp, firstThread = threadIdx.x % kWarpgroup == 0;
  auto beginScores = [&](int b) { // the first thread of each warpgroup
    expectBytes(scoresArrived, kWgTile);
    loadTile(group ? k : q, group ? maps.k : maps.q, group ? 0 : first, h, b, scoresArrived);
  };
  auto beginValues = [&](int b) { // one thread
    expectBytes(valuesArrived, kWgTile);
    loadTile(v, maps.v, 0, h, b, valuesArrived);
  };
  auto beginBias = [&](int b) {
    copyBias<T>(bias, w, b, h, own, 0);
    copyBias<T>(bias + kWgTile, w, b, h, own, 64);
  };
  const float one[2] = {1, 1};
  uint32_t packedOut[4][4];
  float lse[2];
  // All have used up v of batch b: stores the result, and loads v of the next.
  auto finish = [&](int b) {
    char *result = results + (b - work.begin) % 2 * kWgTile;
    keepPacked(result + group * 8192, packedOut);
    showToProducts();
    if (!firstWarp) {
      pass(3, kWgThreads);
    } else {
      meet(3, kWgThreads);
      if (firstThread && group == 0) {
        storeTile(maps.out, result, first, h, b);
        commitStores();
      }
      if (firstThread && group == 1 && b + 1 < work.end)
        beginValues(b + 1);
      __syncwarp();
    }
    storeSums(w, b, h, rowOfWarp, lse); // not before: what makes the result visible waits for all that was begun
  };
  if (work.begin >= work.end)
    return;
  if (threadIdx.x == 0) {
    beginArrivals(scoresArrived, 2);
    beginArrivals(valuesArrived);
  }
  if (w.bias.array.data)
    beginBias(work.begin);
  __syncthreads();
  if (firstThread) {
    beginScores(work.begin);
    if (group == 1)
      beginValues(work.begin);
  }
  WgMask<4> mask;
  mask.begin(w, work.begin, h, 0);
  waitForCopies();
  for (int b = work.begin; b < work.end; ++b) {
    const int item = b - work.begin;
    waitForBytes(scoresArrived, item);
    float p[kWgBlocks][4], out[8][4], shift[2], sum[2], factor[2];
    beginProducts();
    {
      const uint64_t left = matrixAt(q + group * 8192), right = matrixAt(k);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
      commitProducts();
    }
    if (item > 0)
      finish(b - 1);
    mask.beginRows(w, b, h, rows, 0);
    mask.arrange(w);
    waitForProducts<0>();
    pinned(p);
    __syncthreads(); // all have used up q and k
    if (firstThread && b + 1 < work.end)
      beginScores(b + 1);
    makeScores<T>(p, w, bias, mask, w.keys);
    if (!biasStays && w.bias.array.data && b + 1 < work.end) {
      meet(1 + group, kWarpgroup);
      beginBias(b + 1);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float highest = highestOf(p, half);
      shift[half] = highest == -INFINITY ? 0.0f : highest; // a row of -inf gives exponentials of 0 and not NaN
    }
    makeExponentials(p, shift, sum);
    if constexpr (kDrops)
      dropSome(p, w, b, h, rows, 0);
    uint32_t packed[kWgBlocks / 2][4];
    packRows<T>(packed, p, one);
    waitForBytes(valuesArrived, item);
    beginProducts();
    const uint64_t values = matrixAt(v);
#pragma unroll
    for (int j = 0; j < kWgRows / 16; ++j)
      multiply<T, true>(out, packed[j], further(values, j * 2048), j > 0);
    commitProducts();
    if (b + 1 < work.end)
      mask.begin(w, b + 1, h, 0);
    finishSums(factor, lse, shift, sum);
    waitForCopies();
    if (threadIdx.x == 0)
      waitForStores(); // behind the barrier of the next batch, the place of that result is free
    waitForProducts<0>();
    pinned(out);
    packRows<T>(packedOut, out, factor);
  }
  finish(work.end - 1);
  if (threadIdx.x == 0)
    waitForStores();
}

} // namespace

cudaError_t prepareAttentionWg(const AttentionWork &w) {
  return w.keys > kWgRows ? prepareAttentionWgMany(w) : withDrops(w, [&](auto type, auto drops) {
    return allowShared(attendWgmma<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueAttentionWg(const AttentionWork &w, void *, cudaStream_t stream) {
  if (w.batch == 0 || w.queries == 0 || w.heads == 0)
    return cudaSuccess;
  if (w.keys > kWgRows)
    return enqueueAttentionWgMany(w, stream);
  AttendMaps maps;
  if (cudaError_t code = describe(maps, w); code != cudaSuccess)
    return code;
  const int chunks = chunksFor(w, w.queries, 2), bytes = kBias + (w.bias.array.data ? 2 * kWgTile : 0);
  const dim3 grid(w.heads * chunks, blocksFor(w.queries, kWgRows));
  return withDrops(w, [&](auto type, auto drops) {
    return enqueue(attendWgmma<decltype(type), decltype(drops)::value>, grid, kWgThreads, bytes, stream, w, maps,
                   chunks);
  });
}

} // namespace shardc::cuda
