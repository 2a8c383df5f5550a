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
/// Bands of scores in 16 bits: 16 rows that meet 64 others, one band a warp.
constexpr int kBandPitch = 88, kBandSize = 16 * kBandPitch, kBandsSize = kThreads / kWarp * kBandSize;
/// Tiles of 16-bit scores, and their bands: 128 rows that meet 128 others.
constexpr int kScorePitch = kSide + 8, kWideBand = 144, kWideBandPitch = kWideBand + 8;
constexpr int kScoresSize = kSide * kScorePitch, kWideBandSize = kSide * kWideBandPitch;

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
template <typename T, int N> __device__ inline void bandPart(T *band, const T *a, const T *b) {
  float x[N][4] = {};
  multiplyRows<T, kDepth>(x, a, b);
  const int lane = threadIdx.x % kWarp;
  T *at = band + lane / 4 * kBandPitch + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    *reinterpret_cast<uint32_t *>(at + n * 8) = packPair(x[n][0], x[n][1], T());
    *reinterpret_cast<uint32_t *>(at + n * 8 + 8 * kBandPitch) = packPair(x[n][2], x[n][3], T());
  }
}

/// What the warps compute of a tile of scores: 16 queries from `own` and 64 keys from `half` on.
struct Share {
  int warp, lane, own, half;
  __device__ Share()
      : warp(threadIdx.x / kWarp), lane(threadIdx.x % kWarp), own(warp / 2 * 16), half(warp % 2 * 64) {}

  /// The warp's band of k posQuery^T: 16 keys from `own`, for 64 queries from `half` on.
  template <typename T> __device__ void keyBand(T *bands, const T *k, const T *posQuery) const {
    const T *a = k + own * kRowPitch, *b = posQuery + (kSide - 16 + half - own) * kRowPitch;
    bandPart<T, 6>(bands + warp * kBandSize, a, b); // in two parts, for want of registers
    bandPart<T, 4>(bands + warp * kBandSize + 48, a, b + 48 * kRowPitch);
  }
  /// x += k posQuery^T from the bands of all.
  template <typename T> __device__ void addKeyBands(float (&x)[8][4], const T *bands) const {
    const T *from = bands + (half / 16 * 2 + own / 64) * kBandSize + own % 64 + lane / 4 + 15;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int y = n % 2 * 8 + lane % 4 * 2 + e % 2; // of the 16 keys
        x[n][e] += widen(from[n / 2 * 2 * kBandSize + y * (kBandPitch - 1) + e / 2 * 8]);
      }
  }
  /// x += q posKey^T by way of the warp's own band.
  template <typename T> __device__ void addQueryTerms(float (&x)[8][4], T *bands, const T *q, const T *posKey) const {
    T *band = bands + warp * kBandSize;
    const T *a = q + own * kRowPitch, *b = posKey + (own - half + 64) * kRowPitch;
    bandPart<T, 6>(band, a, b);
    bandPart<T, 4>(band + 48, a, b + 48 * kRowPitch);
    __syncwarp();
    const T *from = band + lane / 4 * (kBandPitch + 1) + 63 - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] += widen(from[e / 2 * 8 * (kBandPitch + 1) - n * 8 - e % 2]);
  }
};

/// Which keys of a tile are hidden, for each query, or for all in row 0: bit l of word t is key 4 l + t.
struct Hidden {
  uint4 rows[kSide];

  /// The block calls; no barrier.
  __device__ void fill(const AttentionWork &w, int b, int h, int i0, int j0) {
    if (!w.mask.array.data)
      return;
    const long long *s = w.mask.strides;
    const unsigned char *mask = static_cast<const unsigned char *>(w.mask.array.data) + b * s[0] + h * s[1];
    const int lane = threadIdx.x % kWarp, j = j0 + lane * 4, count = s[2] ? kSide : 1;
    for (int r = threadIdx.x / kWarp; r < count; r += kThreads / kWarp) {
      const unsigned char *row = mask + min(i0 + r, w.queries - 1) * s[2];
      uint32_t four = 0x01010101;
      if (s[3] == 1 && j + 3 < w.keys && reinterpret_cast<uintptr_t>(row + j) % 4 == 0) {
        four = *reinterpret_cast<const uint32_t *>(row + j);
      } else {
        for (int t = 0; t < 4; ++t)
          if (j + t < w.keys && !row[(j + t) * s[3]])
            four &= ~(1u << 8 * t);
      }
      uint4 bits;
      bits.x = __ballot_sync(0xffffffffu, !(four & 0xffu));
      bits.y = __ballot_sync(0xffffffffu, !(four & 0xff00u));
      bits.z = __ballot_sync(0xffffffffu, !(four & 0xff0000u));
      bits.w = __ballot_sync(0xffffffffu, !(four & 0xff000000u));
      if (lane == 0)
        rows[r] = bits;
    }
  }
  /// Bits n and n + 16 of row r of the tile: are keys half + 8 n + 2 (lane % 4) and the next hidden?
  __device__ uint32_t pairs(const AttentionWork &w, const Share &share, int r) const {
    if (!w.mask.array.data)
      return 0;
    const uint2 words = reinterpret_cast<const uint2 *>(&rows[w.mask.strides[2] ? r : 0])[share.lane % 2];
    const int shift = share.half / 4 + share.lane % 4 / 2;
    return (everySecond(words.x >> shift) & 0xffu) | everySecond(words.y >> shift) << 16;
  }

private:
  /// Bits 0, 2, 4 ... 14 as bits 0 to 7.
  static __device__ uint32_t everySecond(uint32_t x) {
    x &= 0x5555u;
    x = (x | x >> 1) & 0x3333u;
    x = (x | x >> 2) & 0x0f0fu;
    return (x | x >> 4) & 0xffu;
  }
};

/// Of a row of scores times log2(e), from lse as forward left it.
struct RowPower : RowShift {
  using RowShift::RowShift;
  __device__ float power(float score) const { return share != 0 ? share : exp2Fast(score + shift); }
};

constexpr float kLowest = -1e30f; ///< of scores times log2(e): hidden
constexpr float kLn2 = 0.693147181f;

/// A product and its terms as a score times log2(e).
struct ScoreScale {
  float factor, fill;
  explicit __device__ ScoreScale(const AttentionWork &w)
      : factor(float(w.scale) * kLog2E), fill(fmaxf(float(w.fill) * kLog2E, kLowest)) {}
  __device__ float score(float x, bool hidden, bool real) const {
    return !real ? -INFINITY : hidden ? fill : x * factor;
  }
};

/// Items [first, end) of a block, of `items` that all blocks share.
struct Portion {
  int first, end;
  explicit __device__ Portion(int items)
      : first((long long)(items)*blockIdx.x / gridDim.x), end((long long)(items) * (blockIdx.x + 1) / gridDim.x) {}
};
constexpr int kMostBlocks = 132;
inline unsigned blocksOf(long long items) { return unsigned(items < kMostBlocks ? items : kMostBlocks); }

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

/// to[kSide][kScorePitch] = a tile of them, zeros outside: begun.
template <typename T>
__device__ inline void copyScores(T *to, const GradientScores &from, const AttentionWork &w, int b, int h, int i0, int j0) {
  constexpr int kEach = kSide / 8;
#pragma unroll
  for (int e = threadIdx.x; e < kSide * kEach; e += kThreads) {
    const int r = e / kEach, c = e % kEach * 8;
    const bool real = i0 + r < w.queries && j0 + c < from.pitch;
    copyAsync(to + r * kScorePitch + c, from.row<T>(w, b, h, real ? i0 + r : 0) + (real ? j0 + c : 0), real);
  }
}

/// f(row, column, 8 gradients) for the thread's parts of a tile in shared memory. The lanes of a warp have rows beside each
/// other, which lie in different banks of either band.
template <typename T, typename F> __device__ inline void forGradients(const T *scores, F f) {
#pragma unroll
  for (int e = threadIdx.x; e < kSide * kSide / 8; e += kThreads) {
    const int r = e % kSide, c = e / kSide * 8;
    f(r, c, *reinterpret_cast<const Pack<T, 8> *>(scores + r * kScorePitch + c));
  }
}

/// dq += scores k + queryBand posKey, of 16 queries from share.own on and 32 elements from `part` on. `posKey` may be null.
template <typename T>
__device__ inline void addQueryGradient(float (&dq)[4][4], const Share &share, int part, const T *scores, const T *k,
                                        const T *queryBand, const T *posKey) {
  multiplyPlain<T, kScorePitch>(dq, scores + share.own * kScorePitch, k + part, kSide);
  if (posKey)
    multiplyPlain<T, kWideBandPitch>(dq, queryBand + share.own * kWideBandPitch, posKey + share.own * kRowPitch + part,
                                     kWideBand);
}

/// A warp's part of dq, dk or dv: 16 rows from `first` on, 32 elements from `column` on.
template <typename T>
__device__ inline void storePart(const HeadsView &to, int b, int h, int first, int end, int column,
                                 const float (&x)[4][4], float factor) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= end)
      continue;
    T *at = static_cast<T *>(to.data) + b * to.batch + h * to.head + row * to.row + column + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 4; ++n)
      *reinterpret_cast<uint32_t *>(at + n * 8) = packPair(x[n][2 * half] * factor, x[n][2 * half + 1] * factor, T());
  }
}

inline int tilesOf(int rows) { return (rows + kSide - 1) / kSide; }
/// f(an element, whether there is dropout as a type).
template <typename F> cudaError_t withKind(const RelativeWork &w, F f) {
  auto withType = [&](auto type) {
    return w.base.dropout > 0 ? f(type, std::true_type()) : f(type, std::false_type());
  };
  return w.base.type == kBF16 ? withType(__nv_bfloat16()) : withType(__half());
}
/// f(an element).
template <typename F> cudaError_t withType(const RelativeWork &w, F f) {
  return w.base.type == kBF16 ? f(__nv_bfloat16()) : f(__half());
}

/// The parts of the gradient: ds, dv and dk; dpos_key, dpos_query, and dq where one tile holds all keys; else dq.
inline bool queriesWithPositions(const RelativeWork &w) {
  return w.base.keys <= kSide && (w.posKey.data || w.posQuery.data);
}
cudaError_t prepareGradKeys(const RelativeWork &);
cudaError_t enqueueGradKeys(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradQueries(const RelativeWork &);
cudaError_t enqueueGradQueries(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradPositions(const RelativeWork &);
/// `partials`: gradPositionsScratch bytes.
cudaError_t enqueueGradPositions(const RelativeWork &, const GradientScores &, float *partials, cudaStream_t);
long long gradPositionsScratch(const RelativeWork &);

} // namespace shardc::cuda::relative
