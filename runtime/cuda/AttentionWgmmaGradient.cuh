// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements by warpgroups: a kernel that goes through tiles of 128
// queries and 128 keys. Each of two warpgroups has the scores of 64 queries, from which it makes their dq, and dk and dv
// of 64 keys, for which probabilities and the gradient of the scores go through shared memory.
#pragma once

#include "runtime/cuda/AttentionWgmmaSoftmax.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {

/// Bytes of a stage: q, k, v and dout. Behind the two stages lie p and ds, each as two tiles of 64 keys, and in the place
/// of a warpgroup's rows of them its dq, dk and dv when they are done; then, of either stage, lse and the sums of dout
/// out; the barriers, and the bias.
constexpr int kGradStage = 4 * kWgTile, kGradScores = 2 * kWgTile, kHalfTile = kWgTile / 2;
constexpr int kGradRows = 2 * kGradStage + 2 * kGradScores, kGradBarriers = kGradRows + 4 * kWgRows * 4;
constexpr int kGradBias = kGradRows + 3072;

/// What a kernel makes: all, where a head is one tile: then each probability is computed once, and the sum of dout out
/// of a row is that of p dp; or dq of 128 queries, or dk and dv of 128 keys.
enum class Makes { All, Queries, Keys };
/// What becomes of the gradient of the scores: stored as w.dbias says, or summed over the batches of a chunk.
enum class Scores { Dropped, Stored, Summed };
struct GradMaps {
  CUtensorMap q, k, v, dout, dq, dk, dv;
};

/// The sum of dout out of row i: the four lanes that share a row call, with equal arguments.
template <typename T> __device__ inline float rowDelta(const AttentionWork &w, int b, int h, int i) {
  const T *dout = headRow<T>(w.dout, b, h, i) + threadIdx.x % 4 * 16,
          *out = headRow<T>(w.out, b, h, i) + threadIdx.x % 4 * 16;
  float sum = 0;
#pragma unroll
  for (int c = 0; c < 16; c += 8) {
    const Widest<T> left = *reinterpret_cast<const Widest<T> *>(dout + c);
    const Widest<T> right = *reinterpret_cast<const Widest<T> *>(out + c);
#pragma unroll
    for (int l = 0; l < 8; ++l)
      sum = fmaf(widen(left.at[l]), widen(right.at[l]), sum);
  }
  return quadJoin(sum, Plus());
}

/// Blocks: heads x chunks, tiles of what it makes. `sums` has for Scores::Summed (Makes::All) the sums of each block
/// [Sq, Sk]; for many tiles the sums of dout out [B, H, Sq], which Makes::Queries leaves there.
template <typename T, Makes kMakes, Scores kScores, bool kDrops>
__global__ void __launch_bounds__(kWgThreads, 1)
    gradWgmma(const __grid_constant__ AttentionWork w, const __grid_constant__ GradMaps maps, int chunks, float *sums) {
  awaitStream();
  constexpr bool kAll = kMakes == Makes::All;
  char *shared = alignedShared(), *weights = shared + 2 * kGradStage, *gradients = weights + kGradScores;
  float *lseRows = reinterpret_cast<float *>(shared + kGradRows), *sumRows = lseRows + 2 * kWgRows;
  uint64_t *arrived = reinterpret_cast<uint64_t *>(shared + kGradBarriers);
  const WgWork work(w, chunks);
  const int h = work.head, group = warpgroup(), lane = threadIdx.x % kWarp;
  const int rowOfWarp = group * 64 + threadIdx.x / kWarp % 4 * 16; // of the tile
  const int tiles = kAll ? 1 : ((kMakes == Makes::Queries ? w.keys : w.queries) + kWgRows - 1) / kWgRows;
  const int items = (work.end - work.begin) * tiles, ownTile = kAll ? 0 : blockIdx.y * kWgRows;
  // Of an item: its batch, its first query and its first key; the stage of what stays for the batch.
  auto batchOf = [&](int item) { return work.begin + item / tiles; };
  auto queryOf = [&](int item) { return kMakes == Makes::Keys ? item % tiles * kWgRows : ownTile; };
  auto keyOf = [&](int item) { return kMakes == Makes::Queries ? item % tiles * kWgRows : ownTile; };
  auto stageOf = [&](int item) { return shared + item % 2 * kGradStage; };
  auto stayingStage = [&](int item) { return shared + item / tiles % 2 * kGradStage; };
  // Four threads load a tile each: q, k, v, dout.
  const int warp = threadIdx.x / kWarp % 4, tile = lane == 0 && warp < 2 ? group * 2 + warp : 4;
  auto begin = [&](int item) {
    if (tile == 4)
      return;
    const bool ofQueries = tile == 0 || tile == 3, stays = kMakes == (ofQueries ? Makes::Queries : Makes::Keys);
    const bool comes = !stays || item % tiles == 0;
    uint64_t *barrier = arrived + item % 2;
    expectBytes(barrier, comes ? kWgTile : 0);
    if (comes)
      loadTile((stays ? stayingStage(item) : stageOf(item)) + tile * kWgTile,
               tile == 0   ? maps.q
               : tile == 1 ? maps.k
               : tile == 2 ? maps.v
                           : maps.dout,
               ofQueries ? queryOf(item) : keyOf(item), h, batchOf(item), barrier);
  };
  char *bias = shared + kGradBias + group * kHalfTile;
  auto beginBias = [&](int item) {
    const int b = batchOf(item), first = queryOf(item) + group * 64, key = keyOf(item);
    copyBias<T>(bias, w, b, h, first, key);
    copyBias<T>(bias + kWgTile, w, b, h, first, key + 64);
  };
  const bool biasStays = kScores == Scores::Summed || (w.bias.strides[0] == 0 && tiles == 1);
  auto rowOf = [&](int item, int half) { return queryOf(item) + rowOfWarp + lane / 4 + 8 * half; };
  auto rowsOf = [&](int item, int (&rows)[2]) {
    rows[0] = min(rowOf(item, 0), w.queries - 1), rows[1] = min(rowOf(item, 1), w.queries - 1);
  };
  auto sumAt = [&](int b, int row) { return sums + ((long long)(b)*w.heads + h) * w.queries + row; };
  // A thread copies what belongs to a row.
  auto beginRows = [&](int item) {
    const int at = item % 2 * kWgRows + threadIdx.x, row = queryOf(item) + threadIdx.x, b = batchOf(item);
    if (threadIdx.x >= kWgRows || row >= w.queries)
      return;
    copyFloat(lseRows + at, w.lse, b * w.lseBatch + h * w.lseHead + row);
    if (kMakes == Makes::Keys)
      copyFloat(sumRows + at, {sums, ElementType::F32}, sumAt(b, row) - sums);
  };
  if (items <= 0)
    return;
  if (threadIdx.x == 0) {
    beginArrivals(arrived, 4);
    beginArrivals(arrived + 1, 4);
  }
  beginRows(0);
  if (w.bias.array.data)
    beginBias(0);
  __syncthreads();
  begin(0);
  if (items > 1) {
    begin(1);
    beginRows(1);
  }
  waitForCopies();
  __syncthreads();
  float dq[8][4], dk[8][4], dv[8][4], ownDelta[2], total[kScores == Scores::Summed ? kWgBlocks : 1][4] = {};
  const float scale[2] = {float(w.scale), float(w.scale)}, one[2] = {1, 1};
  uint32_t dqDone[4][4], dkDone[4][4], dvDone[4][4];
  // Stores what is done of batch b.
  auto finish = [&](int b) {
    char *results = weights + group * kHalfTile;
    if (kMakes == Makes::Queries) {
      waitForStores(); // of the batch before
      meet(1 + group, kWarpgroup);
    }
    if (kMakes != Makes::Keys)
      keepPacked(results, dqDone);
    if (kMakes != Makes::Queries) {
      keepPacked(results + kWgTile, dkDone);
      keepPacked(results + 2 * kWgTile, dvDone);
    }
    showToProducts();
    meet(1 + group, kWarpgroup);
    const int row = ownTile + group * 64;
    if (lane == 0) { // a warp each
      if (warp == 0 && kMakes != Makes::Keys)
        storeTile(maps.dq, results, row, h, b);
      if (warp == 1 && kMakes != Makes::Queries)
        storeTile(maps.dk, results + kWgTile, row, h, b);
      if (warp == 2 && kMakes != Makes::Queries)
        storeTile(maps.dv, results + 2 * kWgTile, row, h, b);
    }
    commitStores();
    __syncwarp();
  };
  WgMask<4> mask;
  const bool maskStays = kAll && mask.stays(w);
  for (int item = 0; item < items; ++item) {
    const int b = batchOf(item), firstKey = keyOf(item);
    const bool maskComes = item == 0 || !maskStays;
    const bool first = item % tiles == 0;
    const char *queries = kMakes == Makes::Queries ? stayingStage(item) : stageOf(item);
    const char *keys = kMakes == Makes::Keys ? stayingStage(item) : stageOf(item);
    int rows[2];
    rowsOf(item, rows);
    if (maskComes)
      mask.begin(w, b, h, firstKey);
    waitForBytes(arrived + item % 2, item / 2);
    float p[kWgBlocks][4], ds[kWgBlocks][4];
    beginProducts();
    const uint64_t left = matrixAt(queries + group * kHalfTile), right = matrixAt(keys + kWgTile);
#pragma unroll
    for (int d = 0; d < 4; ++d)
      multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
    commitProducts();
    if (item > 0 && first)
      finish(b - 1);
    beginProducts();
#pragma unroll
    for (int d = 0; d < 4; ++d)
      multiply<T, false, false>(ds, further(left, 3 * kWgTile + d * 32), further(right, kWgTile + d * 32), d > 0);
    commitProducts();
    float lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = item % 2 * kWgRows + rowOfWarp + lane / 4 + 8 * half;
      const bool real = rowOf(item, half) < w.queries;
      lse[half] = real ? lseRows[at] : -INFINITY;
      if (kMakes == Makes::Keys)
        delta[half] = real ? sumRows[at] : 0.0f;
      if (kMakes == Makes::Queries) { // of all tiles of the batch
        if (first) {
          ownDelta[half] = rowDelta<T>(w, b, h, rows[half]);
          if (lane % 4 == 0 && real)
            *sumAt(b, rows[half]) = ownDelta[half];
        }
        delta[half] = ownDelta[half];
      }
    }
    if (maskComes) {
      mask.beginRows(w, b, h, rows, firstKey);
      mask.arrange(w);
    }
    waitForProducts<1>();
    pinned(p);
    makeScores<T>(p, w, bias, mask, w.keys - firstKey);
    const float shift[2] = {lse[0] == -INFINITY ? -INFINITY : -lse[0] * kLog2E,
                            lse[1] == -INFINITY ? -INFINITY : -lse[1] * kLog2E};
    const bool equal[2] = {lse[0] < -1e30f && lse[0] != -INFINITY, lse[1] < -1e30f && lse[1] != -INFINITY};
    const bool anyEqual = __any_sync(0xffffffffu, equal[0] || equal[1]);
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        p[n][e] = exp2Fast(fmaf(p[n][e], kLog2E, shift[e / 2]));
    if (anyEqual) { // adding log(n) to the lowest float is lost: all scores of such a row are equal
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (equal[e / 2])
            p[n][e] = firstKey + n * 8 + lane % 4 * 2 + e % 2 < w.keys ? 1.0f / w.keys : 0.0f;
    }
    waitForProducts<0>();
    pinned(ds);
    if constexpr (kDrops) {
      const ScoreEffects effects(w, b, h);
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, rows, firstKey + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          ds[n][2 * half] *= keep[half].x, ds[n][2 * half + 1] *= keep[half].y;
          // The sign of p keeps what was dropped until ds is there.
          p[n][2 * half] = keep[half].x == 0 ? -p[n][2 * half] : p[n][2 * half];
          p[n][2 * half + 1] = keep[half].y == 0 ? -p[n][2 * half + 1] : p[n][2 * half + 1];
        }
      }
    }
    auto probability = [&](float one) { return kDrops ? fabsf(one) : one; };
    if constexpr (kAll) {
      float other[2] = {0, 0}; // two chains each
      delta[0] = delta[1] = 0;
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          delta[half] = fmaf(probability(p[n][2 * half]), ds[n][2 * half], delta[half]);
          other[half] = fmaf(probability(p[n][2 * half + 1]), ds[n][2 * half + 1], other[half]);
        }
      delta[0] = quadJoin(delta[0] + other[0], Plus()), delta[1] = quadJoin(delta[1] + other[1], Plus());
    }
    const float kept = float(1 / (1 - w.dropout));
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        ds[n][e] = probability(p[n][e]) * (ds[n][e] - delta[e / 2]);
        if (kDrops)
          p[n][e] = fmaxf(p[n][e], 0.0f) * kept;
      }
    // Elsewhere the probability of what is hidden is 0.
    const bool hides = mask.hidesAny() && (anyEqual || w.fill > -1e30);
    auto hide = [&] {
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (mask.hides(n, e))
            ds[n][e] = 0;
    };
    if (hides && !w.maskAdds)
      hide();
    uint32_t packed[kWgBlocks / 2][4];
    if constexpr (kMakes != Makes::Queries) {
      waitForStores(); // results have left their place
      meet(1 + group, kWarpgroup);
      packRows<T>(packed, p, one);
      keepPacked(weights + group * kHalfTile, packed);
    }
    packRows<T>(packed, ds, one);
    if constexpr (kMakes != Makes::Queries) {
      keepPacked(gradients + group * kHalfTile, packed);
      showToProducts();
    }
    if (kScores != Scores::Dropped && hides && w.maskAdds)
      hide();
    if constexpr (kScores == Scores::Summed) {
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          total[n][e] += ds[n][e];
    } else if constexpr (kScores == Scores::Stored) {
      const long long *s = w.dbias.strides;
      const int top = queryOf(item) + rowOfWarp;
      T *to = static_cast<T *>(w.dbias.array.data) + b * s[0] + h * s[1] + top * s[2] + firstKey;
      storeWide(to, s[2], w.queries - top, ds, one, w.keys - firstKey);
    }
    if constexpr (kMakes != Makes::Keys) {
      beginProducts();
#pragma unroll
      for (int j = 0; j < kWgRows / 16; ++j)
        multiply<T, true>(dq, packed[j], further(right, j * 2048), j > 0 || !first);
      commitProducts();
    }
    if constexpr (kMakes != Makes::Queries) {
      __syncthreads();
      beginProducts();
      const uint64_t scores = matrixAt(weights + group * kWgTile), operands = matrixAt(queries);
#pragma unroll
      for (int i = 0; i < kWgRows / 16; ++i)
        multiply<T, true, true>(dv, further(scores, i * 2048), further(operands, 3 * kWgTile + i * 2048),
                                i > 0 || !first);
#pragma unroll
      for (int i = 0; i < kWgRows / 16; ++i)
        multiply<T, true, true>(dk, further(scores, kGradScores + i * 2048), further(operands, i * 2048),
                                i > 0 || !first);
      commitProducts();
    }
    if (!biasStays && w.bias.array.data && item + 1 < items) {
      meet(1 + group, kWarpgroup);
      beginBias(item + 1);
    }
    waitForProducts<0>();
    if (kMakes != Makes::Queries)
      pinned(dk), pinned(dv);
    if (kMakes != Makes::Keys)
      pinned(dq);
    waitForCopies();
    __syncthreads(); // all have used up the stage and the scores
    if (item + 2 < items) {
      begin(item + 2);
      beginRows(item + 2);
    }
    if (item % tiles == tiles - 1) {
      if (kMakes != Makes::Keys)
        packRows<T>(dqDone, dq, scale);
      if (kMakes != Makes::Queries) {
        packRows<T>(dkDone, dk, scale);
        packRows<T>(dvDone, dv, one);
      }
    }
  }
  finish(batchOf(items - 1));
  if constexpr (kScores == Scores::Summed) {
    float *to = sums + (long long)(blockIdx.x) * w.queries * w.keys;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = rowOfWarp + lane / 4 + 8 * half;
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n) {
        const int j = n * 8 + lane % 4 * 2;
        if (i < w.queries && j < w.keys)
          *reinterpret_cast<float2 *>(to + i * w.keys + j) = make_float2(total[n][2 * half], total[n][2 * half + 1]);
      }
    }
  }
  waitForStores();
}

inline cudaError_t describe(GradMaps &maps, const AttentionWork &w) {
  return describeRows(w, {{maps.q, w.q, w.queries, kWgRows},
                          {maps.k, w.k, w.keys, kWgRows},
                          {maps.v, w.v, w.keys, kWgRows},
                          {maps.dout, w.dout, w.queries, kWgRows},
                          {maps.dq, w.dq, w.queries, 64},
                          {maps.dk, w.dk, w.keys, 64},
                          {maps.dv, w.dv, w.keys, 64}});
}

/// More than 128 queries or keys (AttentionWgmmaBackwardMany.cu). `sums`: a float for each query of each head.
cudaError_t prepareAttentionGradWgMany(const AttentionWork &);
cudaError_t enqueueAttentionGradWgMany(const AttentionWork &, const GradMaps &, float *sums, cudaStream_t);

inline int gradShared(const AttentionWork &w) { return kGradBias + (w.bias.array.data ? kGradScores : 0); }

} // namespace shardc::cuda
