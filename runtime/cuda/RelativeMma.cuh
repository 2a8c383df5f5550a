// SPDX-License-Identifier: Apache-2.0
// What the tensor-core kernels of relative_attention share. A block has sixteen warps and works on tiles of 128 queries
// and 128 keys of a head, which meet at 255 distances: the local row of query y and key x is y - x + 127. The product of
// 16 queries (or keys) with all of a tile's distances that they meet is a band: each row of it begins one distance later
// than the row before. Shared memory turns bands into scores, and gradients of scores into bands.
#pragma once

#include "runtime/cuda/AttentionMma.cuh"
#include "runtime/cuda/RelativeAttention.h"

namespace shardc::cuda::relative {

constexpr int kThreads = 512, kSide = 128, kDistances = 256, kDepth = 64, kRowPitch = kPitch<kDepth>;
constexpr int kTileSize = kSide * kRowPitch, kDistancesSize = kDistances * kRowPitch;
/// Bands of f32 scores: 16 rows that meet 64 others, one band a warp.
constexpr int kBandPitch = 80, kBandSize = 16 * kBandPitch, kBandBytes = kThreads / kWarp * kBandSize * 4;
/// Tiles of 16-bit scores, and their bands: 128 rows that meet 128 others.
constexpr int kScorePitch = kSide + 8, kWideBand = 144, kWideBandPitch = kWideBand + 8;
constexpr int kScoresSize = kSide * kScorePitch, kWideBandSize = kSide * kWideBandPitch;

/// Waits until all but the last N groups of this thread's copies are done; closeGroup ends one.
__device__ inline void closeGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ inline void waitForGroups() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

/// The global row of local row 0 of the tile of queries from i0 and keys from j0 on.
__host__ __device__ inline int firstDistance(int i0, int j0, int keys) { return i0 - j0 - (kSide - 1) + keys - 1; }

/// to[kDistances][kRowPitch] = rows from `first` on, zeros outside [0, rows): begun.
template <typename T> __device__ inline void copyDistances(T *to, const PositionsView &from, int h, int first, int rows) {
  constexpr int kEach = kDepth / 8;
  const T *base = static_cast<const T *>(from.data) + h * from.head;
#pragma unroll
  for (int e = threadIdx.x; e < kDistances * kEach; e += kThreads) {
    const int r = e / kEach, c = e % kEach * 8;
    const bool real = first + r >= 0 && first + r < rows;
    copyAsync(to + r * kRowPitch + c, base + (real ? first + r : 0) * from.row + c, real);
  }
}

template <typename T> __device__ inline void copyTile(T *to, const HeadsView &from, int b, int h, int first, int end) {
  copyRows<T, kDepth, kSide, kThreads>(to, from, b, h, first, end);
}

/// band[16, 8 N] = a b^T for the 16 rows at `a` and 8 N rows at `b`.
template <typename T, int N> __device__ inline void bandPart(float *band, const T *a, const T *b) {
  float x[N][4] = {};
  multiplyRows<T, kDepth>(x, a, b);
  const int lane = threadIdx.x % kWarp;
  float *at = band + lane / 4 * kBandPitch + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    *reinterpret_cast<float2 *>(at + n * 8) = {x[n][0], x[n][1]};
    *reinterpret_cast<float2 *>(at + n * 8 + 8 * kBandPitch) = {x[n][2], x[n][3]};
  }
}
/// All 80 columns: in two parts, for want of registers.
template <typename T> __device__ inline void makeBand(float *band, const T *a, const T *b) {
  bandPart<T, 6>(band, a, b);
  bandPart<T, 4>(band + 48, a, b + 48 * kRowPitch);
}

/// x = q k^T + q posKey^T + k posQuery^T, unscaled, of the warp's 16 queries from warp / 2 * 16 and 64 keys from
/// warp % 2 * 64 on. posKey and posQuery may be null. Waits for all copies before posKey is read. The block calls;
/// everybody has left the bands of others at the end, not its own.
template <typename T>
__device__ inline void scoresOfTile(float (&x)[8][4], const T *q, const T *k, const T *posKey, const T *posQuery,
                                    float *bands) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, own = warp / 2 * 16, half = warp % 2 * 64;
  float *band = bands + warp * kBandSize;
  if (posQuery) { // here 16 keys from `own`, 64 queries from `half` on
    makeBand(band, k + own * kRowPitch, posQuery + (kSide - 16 + half - own) * kRowPitch);
    __syncthreads();
  }
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      x[n][e] = 0;
  multiplyRows<T, kDepth>(x, q + own * kRowPitch, k + half * kRowPitch);
  if (posQuery) {
    const float *from = bands + (half / 16 * 2 + own / 64) * kBandSize + own % 64 + lane / 4 + 15;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int y = n % 2 * 8 + lane % 4 * 2 + e % 2; // of the 16 keys
        x[n][e] += from[n / 2 * 2 * kBandSize + y * (kBandPitch - 1) + e / 2 * 8];
      }
  }
  waitForGroups<0>();
  __syncthreads();
  if (posKey) {
    makeBand(band, q + own * kRowPitch, posKey + (own - half + 64) * kRowPitch);
    __syncwarp();
    const float *from = band + lane / 4 * (kBandPitch + 1) + 63 - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] += from[e / 2 * 8 * (kBandPitch + 1) - n * 8 - e % 2];
  }
}

/// x[16, 8 N] += a b for 16 rows of 16-bit `a`, `depth` long, and `depth` rows at `b`.
template <typename T, int kPitchA, int N>
__device__ inline void multiplyPlain(float (&x)[N][4], const T *a, const T *b, int depth) {
  const int lane = threadIdx.x % kWarp;
  const T *rowA = a + (lane % 16) * kPitchA + lane / 16 * 8, *rowB = b + (lane % 16) * kRowPitch + lane / 16 * 8;
#pragma unroll 3
  for (int d = 0; d < depth; d += 16) {
    uint32_t left[4], right[4];
    loadMatrices(left, rowA + d);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadTransposed(right, rowB + d * kRowPitch + n * 8);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

/// x[16, 8 N] += a^T b for 16 columns of `a`, `rows` of them, and as many rows at `b`.
template <typename T, int kPitchA, int N>
__device__ inline void multiplyTurned(float (&x)[N][4], const T *a, const T *b, int rows) {
  const int lane = threadIdx.x % kWarp;
  const T *rowA = a + (lane % 8 + lane / 16 * 8) * kPitchA + lane / 8 % 2 * 8;
  const T *rowB = b + (lane % 16) * kRowPitch + lane / 16 * 8;
#pragma unroll 2
  for (int r = 0; r < rows; r += 16) {
    uint32_t left[4], right[4];
    loadTransposed(left, rowA + r * kPitchA);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      loadTransposed(right, rowB + r * kRowPitch + n * 8);
      multiplyAdd(x[n], left, right[0], right[1], T());
      multiplyAdd(x[n + 1], left, right[2], right[3], T());
    }
  }
}

/// Column of a band of queries, whose row block begins at local row 16 (i / 16): query i, key j of the tile.
__device__ inline int queryColumn(int i, int j) { return i % 16 - j + kSide - 1; }
/// Of a band of keys, whose row block begins at local row kSide - 16 - 16 (j / 16).
__device__ inline int keyColumn(int i, int j) { return i - j % 16 + 15; }
/// Zeros where no query and key of the tile meet; the rest is written for each tile. The block calls.
template <typename T> __device__ inline void clearQueryBand(T *band) {
  for (int e = threadIdx.x; e < kSide * 16; e += kThreads) {
    const int i = e / 16, c = e % 16;
    band[i * kWideBandPitch + (c < i % 16 ? c : c + kSide)] = T(0.0f);
  }
}
template <typename T> __device__ inline void clearKeyBand(T *band) {
  for (int e = threadIdx.x; e < kSide * 16; e += kThreads) {
    const int j = e / 16, c = e % 16;
    band[j * kWideBandPitch + (c < 15 - j % 16 ? c : c + kSide)] = T(0.0f);
  }
}

/// The gradients of scores in scratch memory: [B, H, Sq, pitch] of 16 bits.
struct GradientScores {
  void *data;
  int pitch;
  static __host__ __device__ int pitchOf(int keys) { return (keys + 7) / 8 * 8; }
  template <typename T> __device__ T *row(const AttentionWork &w, int b, int h, int i) const {
    return static_cast<T *>(data) + (((long long)(b)*w.heads + h) * w.queries + i) * pitch;
  }
};

/// f(row, column, 8 gradients) for the thread's parts of a tile; zeros outside. The lanes of a warp have rows beside each
/// other, which lie in different banks of either band.
template <typename T, typename F>
__device__ inline void forGradients(const GradientScores &scores, const AttentionWork &w, int b, int h, int i0, int j0,
                                    F f) {
  constexpr int kEach = kSide / 8;
#pragma unroll
  for (int e = threadIdx.x; e < kSide * kEach; e += kThreads) {
    const int r = e % kSide, c = e / kSide * 8;
    uint4 bits = {0, 0, 0, 0};
    if (i0 + r < w.queries && j0 + c < scores.pitch)
      bits = *reinterpret_cast<const uint4 *>(scores.row<T>(w, b, h, i0 + r) + j0 + c);
    f(r, c, *reinterpret_cast<const Pack<T, 8> *>(&bits));
  }
}

inline int tilesOf(int rows) { return (rows + kSide - 1) / kSide; }
inline bool takesBf16(const RelativeWork &w) { return w.base.type == kBF16; }

/// The parts of the gradient: ds, dv and dk; dq; dpos_key and dpos_query.
cudaError_t prepareGradKeys(const RelativeWork &);
cudaError_t enqueueGradKeys(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradQueries(const RelativeWork &);
cudaError_t enqueueGradQueries(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradPositions(const RelativeWork &);
/// `partials`: gradPositionsScratch bytes.
cudaError_t enqueueGradPositions(const RelativeWork &, const GradientScores &, float *partials, cudaStream_t);
long long gradPositionsScratch(const RelativeWork &);

} // namespace shardc::cuda::relative
