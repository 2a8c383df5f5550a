// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit heads of 64 elements by warpgroups. Probabilities are rounded to 16 bits for their product with v.
#include "runtime/cuda/AttentionWgmma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// Bytes of a stage, q, k and v; the bias lies behind the last.
constexpr int kStage = 3 * kWgTile;
/// Two blocks of one stage on a multiprocessor hide each other's loads; with many keys, a block of two hides its own.
template <bool kManyKeys> constexpr int kStages = kManyKeys ? 2 : 1;
template <bool kManyKeys> constexpr int kResident = kManyKeys ? 1 : 2;

/// kManyKeys: more than 128 keys.
template <typename T, bool kManyKeys>
__global__ void __launch_bounds__(kWgThreads, kResident<kManyKeys>) attendWgmma(AttentionWork w, int chunks) {
  char *shared = alignedShared();
  const WgWork work(w, chunks);
  const int h = work.head, first = blockIdx.y * kWgRows, group = threadIdx.x / kWarpgroup, lane = threadIdx.x % kWarp;
  const int own = first + group * 64, rowOfWarp = own + threadIdx.x / kWarp % 4 * 16;
  const int rows[2] = {min(rowOfWarp + lane / 4, w.queries - 1), min(rowOfWarp + lane / 4 + 8, w.queries - 1)};
  const int keyTiles = kManyKeys ? (w.keys + kWgRows - 1) / kWgRows : 1, items = (work.end - work.begin) * keyTiles;
  char *bias = shared + kStages<kManyKeys> * kStage + group * 64 * 128;
  const bool biasStays = w.bias.strides[0] == 0 && !kManyKeys;
  auto begin = [&](int item) {
    const int b = work.begin + item / keyTiles, tile = item % keyTiles;
    char *to = shared + item % kStages<kManyKeys> * kStage;
    // With many keys, q lies where the stages of its batch agree.
    if (tile == 0)
      copyTile<T>(kManyKeys ? shared + item / keyTiles % kStages<kManyKeys> * kStage : to, w.q, b, h, first, w.queries);
    copyTile<T>(to + kWgTile, w.k, b, h, tile * kWgRows, w.keys);
    copyTile<T>(to + 2 * kWgTile, w.v, b, h, tile * kWgRows, w.keys);
  };
  auto beginBias = [&](int item) {
    copyBias<T>(bias, w, work.begin + item / keyTiles, h, own, item % keyTiles * kWgRows);
  };
  if (items > 0) {
    begin(0);
    if (w.bias.array.data)
      beginBias(0);
  }
  float out[8][4], top[2], sum[2];
  for (int item = 0; item < items; ++item) {
    const int b = work.begin + item / keyTiles, tile = item % keyTiles, keys = w.keys - tile * kWgRows;
    const char *stage = shared + item % kStages<kManyKeys> * kStage;
    const char *q = (kManyKeys ? shared + item / keyTiles % kStages<kManyKeys> * kStage : stage) + group * 64 * 128;
    WgMask mask;
    if (w.mask.array.data)
      mask.load(w, b, h, rows, tile * kWgRows);
    waitForCopies();
    showToProducts();
    __syncthreads(); // this item is there, and the one before is used up
    if (kStages<kManyKeys> > 1 && item + 1 < items)
      begin(item + 1);
    float p[kWgBlocks][4];
    beginProducts();
    const uint64_t left = matrixAt(q), right = matrixAt(stage + kWgTile);
#pragma unroll
    for (int d = 0; d < 4; ++d)
      multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
    commitProducts();
    waitForProducts<0>();
    pinned(p);
    makeScores<T>(p, w, bias, mask, keys);
    if (!biasStays && w.bias.array.data && item + 1 < items) {
      asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
      beginBias(item + 1);
    }
    float shift[2], shrink[2], added[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
        highest = fmaxf(highest, fmaxf(p[n][2 * half], p[n][2 * half + 1]));
      const float before = tile ? top[half] : -INFINITY;
      top[half] = fmaxf(before, quadJoin(highest, [](float a, float b) { return fmaxf(a, b); }));
      shift[half] = top[half] == -INFINITY ? 0.0f : top[half]; // a row of -inf gives exponentials of 0 and not NaN
      shrink[half] = before == -INFINITY ? 0.0f : exp2Fast((before - shift[half]) * kLog2E);
    }
    // Of equal scores the exponentials are 1, however large they are.
    if (__any_sync(0xffffffffu, fmaxf(fabsf(shift[0]), fabsf(shift[1])) > 4096)) {
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          p[n][e] -= shift[e / 2];
      shift[0] = shift[1] = 0;
    }
    const float shiftLog2[2] = {-shift[0] * kLog2E, -shift[1] * kLog2E};
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = exp2Fast(fmaf(p[n][e], kLog2E, shiftLog2[e / 2]));
        added[e / 2] += p[n][e];
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = (tile ? sum[half] * shrink[half] : 0.0f) + quadJoin(added[half], Plus());
    if (w.dropout > 0) {
      const ScoreEffects effects(w, b, h);
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, rows, tile * kWgRows + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          p[n][2 * half] *= keep[half].x, p[n][2 * half + 1] *= keep[half].y;
      }
    }
    uint32_t packed[kWgBlocks / 2][4];
#pragma unroll
    for (int n = 0; n < kWgBlocks; n += 2)
#pragma unroll
      for (int m = 0; m < 4; ++m)
        packed[n / 2][m] = packPair(p[n + m / 2][m % 2 * 2], p[n + m / 2][m % 2 * 2 + 1], T());
    if (kManyKeys && tile) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          out[n][e] *= shrink[e / 2];
    }
    if (kManyKeys)
      pinned(out);
    beginProducts();
    const uint64_t values = matrixAt(stage + 2 * kWgTile);
#pragma unroll
    for (int j = 0; j < kWgRows / 16; ++j)
      multiply<T, true>(out, packed[j], further(values, j * 2048), j > 0 || (kManyKeys && tile));
    commitProducts();
    waitForProducts<0>();
    pinned(out);
    if (kStages<kManyKeys> == 1 && item + 1 < items) {
      __syncthreads();
      begin(item + 1);
    }
    if (tile + 1 < keyTiles)
      continue;
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = rowOfWarp + lane / 4 + 8 * half;
      factor[half] = sum[half] == 0 ? 0.0f : 1 / sum[half];
      if (lane % 4 == 0 && i < w.queries)
        store(w.lse, b * w.lseBatch + h * w.lseHead + i,
              (top[half] == -INFINITY ? 0.0f : top[half]) + logf(sum[half]));
    }
    storeWide(headRow<T>(w.out, b, h, rowOfWarp), w.out.row, w.queries - rowOfWarp, out, factor);
  }
}

/// f(an element, are there many keys?)
template <typename F> cudaError_t withKeys(const AttentionWork &w, F f) {
  auto withType = [&](auto many) { return w.type == kBF16 ? f(__nv_bfloat16(), many) : f(__half(), many); };
  return w.keys > kWgRows ? withType(std::true_type()) : withType(std::false_type());
}

} // namespace

cudaError_t prepareAttentionWg(const AttentionWork &w) {
  return withKeys(w, [&](auto type, auto many) {
    return allowShared(attendWgmma<decltype(type), decltype(many)::value>);
  });
}

cudaError_t enqueueAttentionWg(const AttentionWork &w, void *, cudaStream_t stream) {
  return withKeys(w, [&](auto type, auto many) {
    constexpr bool kManyKeys = decltype(many)::value;
    const int chunks = chunksFor(w, kWgProcessors * kResident<kManyKeys>);
    const int bytes = kStages<kManyKeys> * kStage + (w.bias.array.data ? 2 * kWgTile : 0);
    const dim3 grid(w.heads * chunks, blocksFor(w.queries, kWgRows));
    return enqueue(attendWgmma<decltype(type), kManyKeys>, grid, kWgThreads, bytes, stream, w, chunks);
  });
}

} // namespace shardc::cuda
