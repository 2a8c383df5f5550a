// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements by warpgroups: a kernel that goes through tiles of 128
// queries and 128 keys. Each of its four warpgroups has the scores of 64 queries and 64 keys of a tile; probabilities
// and the gradient of the scores go through shared memory, from which the products of all of the tile are made.
#pragma once

#include "runtime/cuda/AttentionWgmma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {

constexpr int kGradThreads = 4 * kWarpgroup, kGradBlocks = 8;
/// Bytes of a stage: q, k, v and dout, in whose places dq, dk and dv are left. Behind the two stages lie p and ds, each
/// as two tiles of 64 keys; then parts of sums, the barriers, and the bias.
constexpr int kGradStage = 4 * kWgTile, kGradScores = 2 * kWgTile, kGradParts = 2 * kGradStage + 2 * kGradScores;
constexpr int kGradBarriers = kGradParts + 2 * kWgRows * 4, kGradBias = kGradBarriers + 1024;

/// What a kernel makes: all, where a head is one tile: then each probability is computed once, and the sum of dout out
/// of a row is that of p dp; or dq of 128 queries, or dk and dv of 128 keys.
enum class Makes { All, Queries, Keys };
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

/// Blocks: heads x chunks, tiles of what it makes. kStores: the gradient of the scores is left as w.dbias says. `sums`
/// has, for many tiles, the sums of dout out [B, H, Sq], which Makes::Queries leaves there.
template <typename T, Makes kMakes, bool kStores, bool kDrops>
__global__ void __launch_bounds__(kGradThreads, 1)
    gradWgmma(const __grid_constant__ AttentionWork w, const __grid_constant__ GradMaps maps, int chunks, float *sums) {
  constexpr bool kAll = kMakes == Makes::All;
  char *shared = alignedShared(), *weights = shared + 2 * kGradStage, *gradients = weights + kGradScores;
  float *parts = reinterpret_cast<float *>(shared + kGradParts);
  uint64_t *arrived = reinterpret_cast<uint64_t *>(shared + kGradBarriers);
  const WgWork work(w, chunks);
  const int h = work.head, group = warpgroup(), lane = threadIdx.x % kWarp;
  const int queryHalf = group % 2, keyHalf = group / 2;
  const int rowOfWarp = queryHalf * 64 + threadIdx.x / kWarp % 4 * 16; // of the tile
  const int tiles = kAll ? 1 : ((kMakes == Makes::Queries ? w.keys : w.queries) + kWgRows - 1) / kWgRows;
  const int items = (work.end - work.begin) * tiles, ownTile = kAll ? 0 : blockIdx.y * kWgRows;
  // Of an item: its batch, its first query and its first key; the stage of what stays for the batch.
  auto batchOf = [&](int item) { return work.begin + item / tiles; };
  auto queryOf = [&](int item) { return kMakes == Makes::Keys ? item % tiles * kWgRows : ownTile; };
  auto keyOf = [&](int item) { return kMakes == Makes::Queries ? item % tiles * kWgRows : ownTile; };
  auto stayingStage = [&](int item) { return shared + item / tiles % 2 * kGradStage; };
  auto begin = [&](int item) { // one thread
    const int b = batchOf(item), query = queryOf(item), key = keyOf(item);
    char *stage = shared + item % 2 * kGradStage, *staying = stayingStage(item);
    char *queries = kMakes == Makes::Queries ? staying : stage, *keys = kMakes == Makes::Keys ? staying : stage;
    const bool first = item % tiles == 0;
    uint64_t *barrier = arrived + item % 2;
    expectBytes(barrier, (first ? 4 : 2) * kWgTile);
    if (first || kMakes != Makes::Queries) {
      loadTile(queries, maps.q, query, h, b, barrier);
      loadTile(queries + 3 * kWgTile, maps.dout, query, h, b, barrier);
    }
    if (first || kMakes != Makes::Keys) {
      loadTile(keys + kWgTile, maps.k, key, h, b, barrier);
      loadTile(keys + 2 * kWgTile, maps.v, key, h, b, barrier);
    }
  };
  char *bias = shared + kGradBias + keyHalf * kWgTile + queryHalf * 8192;
  auto beginBias = [&](int item) {
    copyBias<T>(bias, w, batchOf(item), h, queryOf(item) + queryHalf * 64, keyOf(item) + keyHalf * 64);
  };
  const bool biasStays = w.bias.strides[0] == 0 && tiles == 1;
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
  float x[8][4], dq[4][4], delta[2];
  for (int item = 0; item < items; ++item) {
    const int b = batchOf(item), firstKey = keyOf(item) + keyHalf * 64, row = queryOf(item) + rowOfWarp + lane / 4;
    const bool first = item % tiles == 0, last = item % tiles == tiles - 1;
    char *stage = shared + item % 2 * kGradStage, *staying = stayingStage(item);
    const char *queries = kMakes == Makes::Queries ? staying : stage, *keys = kMakes == Makes::Keys ? staying : stage;
    const bool real[2] = {row < w.queries, row + 8 < w.queries};
    const int rows[2] = {real[0] ? row : 0, real[1] ? row + 8 : 0};
    WgMask<2> mask;
    mask.load(w, b, h, rows, firstKey);
    float lse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      lse[half] = real[half] ? load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[half]) : -INFINITY;
      float *sum = sums + ((long long)(b)*w.heads + h) * w.queries + rows[half];
      if (kMakes == Makes::Keys)
        delta[half] = *sum;
      if (kMakes == Makes::Queries && first) {
        delta[half] = rowDelta<T>(w, b, h, rows[half]);
        if (keyHalf == 0 && lane % 4 == 0 && real[half])
          *sum = delta[half];
      }
    }
    waitForBytes(arrived + item % 2, item / 2);
    float p[kGradBlocks][4], ds[kGradBlocks][4];
    beginProducts();
    {
      const uint64_t left = matrixAt(queries + queryHalf * 8192), right = matrixAt(keys + kWgTile + keyHalf * 8192);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
      commitProducts();
      const uint64_t leftGrad = further(left, 3 * kWgTile), rightGrad = further(right, kWgTile);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(ds, further(leftGrad, d * 32), further(rightGrad, d * 32), d > 0);
      commitProducts();
    }
    mask.arrange(w);
    waitForProducts<1>();
    pinned(p);
    makeScores<T>(p, w, bias, mask, w.keys - firstKey);
    const float shift[2] = {lse[0] == -INFINITY ? -INFINITY : -lse[0] * kLog2E,
                            lse[1] == -INFINITY ? -INFINITY : -lse[1] * kLog2E};
    const bool equal[2] = {lse[0] < -1e30f && lse[0] != -INFINITY, lse[1] < -1e30f && lse[1] != -INFINITY};
    const bool anyEqual = __any_sync(0xffffffffu, equal[0] || equal[1]);
#pragma unroll
    for (int n = 0; n < kGradBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        p[n][e] = exp2Fast(fmaf(p[n][e], kLog2E, shift[e / 2]));
    if (anyEqual) { // adding log(n) to the lowest float is lost: all scores of such a row are equal
#pragma unroll
      for (int n = 0; n < kGradBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (equal[e / 2])
            p[n][e] = firstKey + n * 8 + lane % 4 * 2 + e % 2 < w.keys ? 1.0f / w.keys : 0.0f;
    }
    // By now the stores of the items before have read what is loaded over.
    if (threadIdx.x == 0 && item + 1 < items) {
      waitForStores();
      begin(item + 1);
    }
    waitForProducts<0>();
    pinned(ds);
    if constexpr (kDrops) {
      const ScoreEffects effects(w, b, h);
#pragma unroll
      for (int n = 0; n < kGradBlocks; ++n) {
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
      for (int n = 0; n < kGradBlocks; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          delta[half] = fmaf(probability(p[n][2 * half]), ds[n][2 * half], delta[half]);
          other[half] = fmaf(probability(p[n][2 * half + 1]), ds[n][2 * half + 1], other[half]);
        }
        // The other half of the keys has its part of the sums.
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        delta[half] = quadJoin(delta[half] + other[half], Plus());
        if (lane % 4 == 0)
          parts[keyHalf * kWgRows + rowOfWarp + lane / 4 + 8 * half] = delta[half];
      }
      meet(1 + queryHalf, 2 * kWarpgroup);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        delta[half] = parts[rowOfWarp + lane / 4 + 8 * half] + parts[kWgRows + rowOfWarp + lane / 4 + 8 * half];
    }
    const float kept = float(1 / (1 - w.dropout));
#pragma unroll
    for (int n = 0; n < kGradBlocks; ++n)
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
      for (int n = 0; n < kGradBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (mask.hides(n, e))
            ds[n][e] = 0;
    };
    if (hides && !w.maskAdds)
      hide();
    const int place = keyHalf * kWgTile + queryHalf * 8192;
    if (kMakes != Makes::Queries)
      keepTile<T>(weights + place, p);
    keepTile<T>(gradients + place, ds);
    if (kStores && hides && w.maskAdds)
      hide();
    if constexpr (kStores) {
      const long long *s = w.dbias.strides;
      const float one[2] = {1, 1};
      const int top = row - lane / 4;
      T *to = static_cast<T *>(w.dbias.array.data) + b * s[0] + h * s[1] + top * s[2] + firstKey;
      storeWide(to, s[2], w.queries - top, ds, one, w.keys - firstKey);
    }
    showToProducts();
    __syncthreads();
    beginProducts();
    if constexpr (kMakes != Makes::Queries) {
      // dv of either half of the keys, dk of either: one for each warpgroup.
      const uint64_t left = matrixAt(weights + group * kWgTile);
      const uint64_t right = matrixAt(queries + (group < 2 ? 3 * kWgTile : 0));
#pragma unroll
      for (int i = 0; i < kWgRows / 16; ++i)
        multiply<T, true, true>(x, further(left, i * 2048), further(right, i * 2048), i > 0 || !first);
    }
    if constexpr (kMakes != Makes::Keys) {
      // Of dq, a half of the queries and of the elements.
      const uint64_t left = matrixAt(gradients + queryHalf * 8192), right = matrixAt(keys + kWgTile + keyHalf * 64);
#pragma unroll
      for (int j = 0; j < kWgRows / 16; ++j)
        multiply<T, false, true>(dq, further(left, j / 4 * kWgTile + j % 4 * 32), further(right, j * 2048),
                                 j > 0 || !first);
    }
    commitProducts();
    if (!biasStays && w.bias.array.data && item + 1 < items) {
      beginBias(item + 1); // all have used up the one before
    }
    waitForProducts<0>();
    if (kMakes != Makes::Queries)
      pinned(x);
    if (kMakes != Makes::Keys)
      pinned(dq);
    waitForCopies();
    __syncthreads(); // all have used up the stage and the scores
    if (!last)
      continue;
    const float scale = float(w.scale);
    if (kMakes != Makes::Queries)
      keepTile<T>(staying + (group < 2 ? 2 : 1) * kWgTile + group % 2 * 8192, x, 0, group < 2 ? 1.0f : scale);
    if (kMakes != Makes::Keys)
      keepTile<T>(staying + queryHalf * 8192, dq, keyHalf * 4, scale);
    showToProducts();
    if (threadIdx.x >= kWarp) {
      pass(3, kGradThreads);
      continue;
    }
    meet(3, kGradThreads);
    if (threadIdx.x == 0) {
      if (kMakes != Makes::Keys)
        storeTile(maps.dq, staying, ownTile, h, b);
      if (kMakes != Makes::Queries) {
        storeTile(maps.dk, staying + kWgTile, ownTile, h, b);
        storeTile(maps.dv, staying + 2 * kWgTile, ownTile, h, b);
      }
      commitStores();
    }
    __syncwarp();
  }
  if (threadIdx.x == 0)
    waitForStores();
}

inline cudaError_t describe(GradMaps &maps, const AttentionWork &w) {
  cudaError_t code = cudaSuccess;
  auto one = [&](CUtensorMap &map, const HeadsView &view, int rows) {
    if (code == cudaSuccess)
      code = describeRows(map, w, view, rows, kWgRows);
  };
  one(maps.q, w.q, w.queries), one(maps.k, w.k, w.keys), one(maps.v, w.v, w.keys), one(maps.dout, w.dout, w.queries);
  one(maps.dq, w.dq, w.queries), one(maps.dk, w.dk, w.keys), one(maps.dv, w.dv, w.keys);
  return code;
}

/// More than 128 queries or keys (AttentionWgmmaBackwardMany.cu). `sums`: a float for each query of each head.
cudaError_t prepareAttentionGradWgMany(const AttentionWork &);
cudaError_t enqueueAttentionGradWgMany(const AttentionWork &, const GradMaps &, float *sums, cudaStream_t);

inline int gradShared(const AttentionWork &w) { return kGradBias + (w.bias.array.data ? kGradScores : 0); }

} // namespace shardc::cuda
