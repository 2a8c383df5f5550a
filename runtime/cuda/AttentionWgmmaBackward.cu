// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements, with at most 128 queries and keys, by warpgroups. A block
// has all scores of a head, so each probability is computed once, and the sum of dout out of a row is that of p dp.
// The bias's gradient stays in registers while the block goes through its batches.
#include "runtime/cuda/AttentionWgmma.cuh"
#include "runtime/cuda/Enqueue.cuh"

namespace shardc::cuda {
namespace {

/// Bytes of a stage: q, k, v and dout. Behind the stages lie p and ds, each as two tiles of 64 keys; then the bias.
constexpr int kStages = 2, kStage = 4 * kWgTile, kScores = 2 * kWgTile;

/// What becomes of the gradient of the scores.
enum class Scores { Dropped, Stored, Summed };

/// 64 rows of scores of a warpgroup, rounded, to the two tiles at `to`.
template <typename T> __device__ inline void keepScores(char *to, const float (&x)[kWgBlocks][4]) {
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * 16 + lane / 4;
  char *at = to + row * 128 + lane % 4 * 4;
#pragma unroll
  for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t *>(at + n / 8 * kWgTile + half * 1024 + (n % 8 ^ lane / 4) * 16) =
          packPair(x[n][2 * half], x[n][2 * half + 1], T());
}

template <typename T, Scores kGradients>
__global__ void __launch_bounds__(kWgThreads, 1) gradWgmma(AttentionWork w, int chunks, float *sums) {
  char *shared = alignedShared(), *weights = shared + kStages * kStage, *gradients = weights + kScores;
  const WgWork work(w, chunks);
  const int h = work.head, group = threadIdx.x / kWarpgroup, lane = threadIdx.x % kWarp;
  const int own = group * 64, rowOfWarp = threadIdx.x / kWarp * 16;
  const bool real[2] = {rowOfWarp + lane / 4 < w.queries, rowOfWarp + lane / 4 + 8 < w.queries};
  const int rows[2] = {real[0] ? rowOfWarp + lane / 4 : 0, real[1] ? rowOfWarp + lane / 4 + 8 : 0};
  char *bias = gradients + kScores + own * 128;
  const bool biasStays = w.bias.strides[0] == 0;
  auto begin = [&](int b) {
    char *to = shared + (b - work.begin) % kStages * kStage;
    copyTile<T>(to, w.q, b, h, 0, w.queries);
    copyTile<T>(to + kWgTile, w.k, b, h, 0, w.keys);
    copyTile<T>(to + 2 * kWgTile, w.v, b, h, 0, w.keys);
    copyTile<T>(to + 3 * kWgTile, w.dout, b, h, 0, w.queries);
  };
  if (work.begin < work.end) {
    begin(work.begin);
    if (w.bias.array.data)
      copyBias<T>(bias, w, work.begin, h, own, 0);
  }
  float total[kGradients == Scores::Summed ? kWgBlocks : 1][4] = {};
  for (int b = work.begin; b < work.end; ++b) {
    const char *stage = shared + (b - work.begin) % kStages * kStage;
    WgMask mask;
    if (w.mask.array.data)
      mask.load(w, b, h, rows, 0);
    float lse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      lse[half] = real[half] ? load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[half]) : -INFINITY;
    waitForCopies();
    showToProducts();
    __syncthreads(); // this batch is there, and the one before is used up
    if (b + 1 < work.end)
      begin(b + 1);
    float p[kWgBlocks][4], ds[kWgBlocks][4];
    beginProducts();
    {
      const uint64_t left = matrixAt(stage + own * 128), right = matrixAt(stage + kWgTile);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(p, further(left, d * 32), further(right, d * 32), d > 0);
      commitProducts();
      const uint64_t leftGrad = matrixAt(stage + 3 * kWgTile + own * 128), rightGrad = matrixAt(stage + 2 * kWgTile);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(ds, further(leftGrad, d * 32), further(rightGrad, d * 32), d > 0);
      commitProducts();
    }
    waitForProducts<1>();
    pinned(p);
    makeScores<T>(p, w, bias, mask, w.keys);
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
            p[n][e] = n * 8 + lane % 4 * 2 + e % 2 < w.keys ? 1.0f / w.keys : 0.0f;
    }
    waitForProducts<0>();
    pinned(ds);
    if (w.dropout > 0) {
      const ScoreEffects effects(w, b, h);
      float delta[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n) {
        float2 keep[2];
        effects.keepPairs(keep, rows, n * 8 + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          ds[n][2 * half] *= keep[half].x, ds[n][2 * half + 1] *= keep[half].y;
          delta[half] = fmaf(p[n][2 * half], ds[n][2 * half], delta[half]);
          delta[half] = fmaf(p[n][2 * half + 1], ds[n][2 * half + 1], delta[half]);
          // The sign of p keeps what was dropped until ds is there.
          p[n][2 * half] = keep[half].x == 0 ? -p[n][2 * half] : p[n][2 * half];
          p[n][2 * half + 1] = keep[half].y == 0 ? -p[n][2 * half + 1] : p[n][2 * half + 1];
        }
      }
      delta[0] = quadJoin(delta[0], Plus()), delta[1] = quadJoin(delta[1], Plus());
      const float kept = float(1 / (1 - w.dropout));
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          ds[n][e] = fabsf(p[n][e]) * (ds[n][e] - delta[e / 2]);
          p[n][e] = fmaxf(p[n][e], 0.0f) * kept;
        }
    } else {
      float delta[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          delta[e / 2] = fmaf(p[n][e], ds[n][e], delta[e / 2]);
      delta[0] = quadJoin(delta[0], Plus()), delta[1] = quadJoin(delta[1], Plus());
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          ds[n][e] = p[n][e] * (ds[n][e] - delta[e / 2]);
    }
    // Elsewhere the probability of what is hidden is 0.
    const bool hides = w.mask.array.data && (anyEqual || w.fill > -1e30);
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
    keepScores<T>(weights, p);
    keepScores<T>(gradients, ds);
    if (kGradients != Scores::Dropped && hides && w.maskAdds)
      hide();
    if constexpr (kGradients == Scores::Summed) {
#pragma unroll
      for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          total[n][e] += ds[n][e];
    } else if constexpr (kGradients == Scores::Stored) {
      const long long *s = w.dbias.strides;
      const float one[2] = {1, 1};
      T *to = static_cast<T *>(w.dbias.array.data) + b * s[0] + h * s[1] + rowOfWarp * s[2];
      storeWide(to, s[2], w.queries - rowOfWarp, ds, one, w.keys);
    }
    showToProducts();
    __syncthreads();
    if (!biasStays && w.bias.array.data && b + 1 < work.end)
      copyBias<T>(bias, w, b + 1, h, own, 0);
    float dv[8][4], dk[8][4], dq[8][4];
    beginProducts();
    {
      const uint64_t left = matrixAt(weights + group * kWgTile), right = matrixAt(stage + 3 * kWgTile);
#pragma unroll
      for (int i = 0; i < kWgRows / 16; ++i)
        multiply<T, true, true>(dv, further(left, i * 2048), further(right, i * 2048), i > 0);
      commitProducts();
    }
    {
      const uint64_t left = matrixAt(gradients + group * kWgTile), right = matrixAt(stage);
#pragma unroll
      for (int i = 0; i < kWgRows / 16; ++i)
        multiply<T, true, true>(dk, further(left, i * 2048), further(right, i * 2048), i > 0);
      commitProducts();
    }
    {
      const uint64_t left = matrixAt(gradients + own * 128), right = matrixAt(stage + kWgTile);
#pragma unroll
      for (int j = 0; j < kWgRows / 16; ++j)
        multiply<T, false, true>(dq, further(left, j / 4 * kWgTile + j % 4 * 32), further(right, j * 2048), j > 0);
      commitProducts();
    }
    const float one[2] = {1, 1}, scale[2] = {float(w.scale), float(w.scale)};
    waitForProducts<2>();
    pinned(dv);
    storeWide(headRow<T>(w.dv, b, h, rowOfWarp), w.dv.row, w.keys - rowOfWarp, dv, one);
    waitForProducts<1>();
    pinned(dk);
    storeWide(headRow<T>(w.dk, b, h, rowOfWarp), w.dk.row, w.keys - rowOfWarp, dk, scale);
    waitForProducts<0>();
    pinned(dq);
    storeWide(headRow<T>(w.dq, b, h, rowOfWarp), w.dq.row, w.queries - rowOfWarp, dq, scale);
  }
  if constexpr (kGradients == Scores::Summed) {
    float *to = sums + (long long)(blockIdx.x) * w.queries * w.keys;
#pragma unroll
    for (int n = 0; n < kWgBlocks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int j = n * 8 + lane % 4 * 2;
        float *at = to + rows[half] * w.keys + j;
        if (real[half] && j < w.keys)
          at[0] = total[n][2 * half];
        if (real[half] && j + 1 < w.keys)
          at[1] = total[n][2 * half + 1];
      }
  }
}

/// dbias[h0, i, j] = the sum over chunks, then heads in which the bias is broadcast. `sums` is [chunks, H, Sq, Sk].
__global__ void __launch_bounds__(kWgThreads) addChunks(AttentionWork w, int chunks, const float *sums) {
  const long long *s = w.dbias.strides, each = (long long)(w.queries) * w.keys;
  const long long at = blockIdx.x * (long long)(kWgThreads) + threadIdx.x;
  if (at >= each)
    return;
  const int h0 = blockIdx.y;
  float sum = 0;
  for (int h = h0; h < (s[1] ? h0 + 1 : w.heads); ++h)
#pragma unroll 8
    for (int c = 0; c < chunks; ++c)
      sum += sums[((long long)(c)*w.heads + h) * each + at];
  store(w.dbias.array, h0 * s[1] + at / w.keys * s[2] + at % w.keys * s[3], sum);
}

Scores scoresOf(const AttentionWork &w) {
  const long long *s = w.dbias.strides;
  if (!w.dbias.array.data)
    return Scores::Dropped;
  return s[0] && w.batch > 1 ? Scores::Stored : Scores::Summed;
}

int chunksOf(const AttentionWork &w) { return chunksFor(w, kWgProcessors); }

template <typename F> cudaError_t withScores(const AttentionWork &w, F f) {
  auto withType = [&](auto scores) {
    return w.type == kBF16 ? f(__nv_bfloat16(), scores) : f(__half(), scores);
  };
  switch (scoresOf(w)) {
  case Scores::Dropped:
    return withType(std::integral_constant<Scores, Scores::Dropped>());
  case Scores::Stored:
    return withType(std::integral_constant<Scores, Scores::Stored>());
  default:
    return withType(std::integral_constant<Scores, Scores::Summed>());
  }
}

} // namespace

bool servesGradWg(const AttentionWork &w) {
  const long long *s = w.dbias.strides;
  if (!servesWg(w) || w.queries > kWgRows || w.keys > kWgRows)
    return false;
  if (!w.dbias.array.data)
    return true;
  const bool full = (s[2] || w.queries == 1) && (s[3] || w.keys == 1) && w.dbias.array.type == w.type;
  return full && (scoresOf(w) == Scores::Summed ||
                  ((s[1] || w.heads == 1) && w.keys % 8 == 0 && uintptr_t(w.dbias.array.data) % 16 == 0));
}

cudaError_t prepareAttentionGradWg(const AttentionWork &w) {
  return withScores(w, [&](auto type, auto scores) {
    return allowShared(gradWgmma<decltype(type), decltype(scores)::value>);
  });
}

cudaError_t enqueueAttentionGradWg(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  const int chunks = chunksOf(w);
  float *sums = static_cast<float *>(scratch);
  const int bytes = kStages * kStage + 2 * kScores + (w.bias.array.data ? kScores : 0);
  cudaError_t code = withScores(w, [&](auto type, auto scores) {
    return enqueue(gradWgmma<decltype(type), decltype(scores)::value>, dim3(w.heads * chunks), kWgThreads,
                   bytes, stream, w, chunks, sums);
  });
  if (code != cudaSuccess || scoresOf(w) != Scores::Summed)
    return code;
  const dim3 grid(blocksFor((long long)(w.queries) * w.keys, kWgThreads), w.dbias.strides[1] ? w.heads : 1);
  return enqueue(addChunks, grid, kWgThreads, 0, stream, w, chunks, static_cast<const float *>(sums));
}

long long attentionGradWgScratch(const AttentionWork &w) {
  return scoresOf(w) == Scores::Summed ? 4ll * chunksOf(w) * w.heads * w.queries * w.keys : 0;
}

} // namespace shardc::cuda
