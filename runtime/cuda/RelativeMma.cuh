// SPDX-License-Identifier: Apache-2.0
// What the tensor-core kernels of relative_attention share. A block has sixteen warps and works on tiles of 128 queries
// and 128 keys of a head, which meet at 255 distances: the local row of query y and key x is y - x + 127. The product of
// 16 queries (or keys) with all of a tile's distances that they meet is a band: each row of it begins one distance later
// than the row before. Shared memory turns bands into scores, and gradients of scores into bands.
#pragma once

#include "runtime/cuda/RelativeProducts.cuh"

namespace shardc::cuda::relative {

/// What the warps compute of a tile of scores: 16 queries from `own` and 64 keys from `half` on.
struct Share {
  int warp, lane, own, half;
  __device__ Share()
      : warp(threadIdx.x / kWarp), lane(threadIdx.x % kWarp), own(warp / 2 * 16), half(warp % 2 * 64) {}

  /// The warp's band of k posQuery^T: 16 keys from `own`, for 64 queries from `half` on.
  template <typename T> __device__ void keyBand(Place<T> bands, Place<T> k, Place<T> posQuery) const {
    makeBand(bands + warp * kBandSize, k + own * kRowPitch, posQuery + (kSide - 16 + half - own) * kRowPitch);
  }
  /// x += k posQuery^T from the bands of all.
  template <typename T> __device__ void addKeyBands(float (&x)[8][4], Place<T> bands) const {
    const T *from = bands.data + (half / 16 * 2 + own / 64) * kBandSize + own % 64 + lane / 4 + 15 +
                    lane % 4 * 2 * (kBandPitch - 1);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) // key n % 2 * 8 + lane % 4 * 2 + e % 2 of the 16
        x[n][e] += widen(from[n / 2 * 2 * kBandSize + (n % 2 * 8 + e % 2) * (kBandPitch - 1) + e / 2 * 8]);
  }
  /// x += q posKey^T by way of the warp's own band.
  template <typename T>
  __device__ void addQueryTerms(float (&x)[8][4], Place<T> bands, Place<T> q, Place<T> posKey) const {
    const Place<T> band = bands + warp * kBandSize;
    makeBand(band, q + own * kRowPitch, posKey + (own - half + 64) * kRowPitch);
    __syncwarp();
    const T *from = band.data + lane / 4 * (kBandPitch + 1) + 63 - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] += widen(from[e / 2 * 8 * (kBandPitch + 1) - n * 8 - e % 2]);
  }

private:
  /// band[16, 80] = a b^T, in two parts, for want of registers.
  template <typename T> __device__ void makeBand(Place<T> band, Place<T> a, Place<T> b) const {
    bandPart<T, 6>(band, a, b);
    bandPart<T, 4>(band + 48, a, b + 48 * kRowPitch);
  }
  template <typename T, int N> __device__ void bandPart(Place<T> band, Place<T> a, Place<T> b) const {
    float x[N][4] = {};
    multiplyHeads(x, a, b);
    T *at = band.data + lane / 4 * kBandPitch + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      *reinterpret_cast<uint32_t *>(at + n * 8) = packPair(x[n][0], x[n][1], T());
      *reinterpret_cast<uint32_t *>(at + n * 8 + 8 * kBandPitch) = packPair(x[n][2], x[n][3], T());
    }
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
#pragma unroll 4
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
    return everySecond(words.x >> shift) | everySecond(words.y >> shift) << 16;
  }
  /// Of the keys from the lane's first on only `left` are there: those beyond are marked as `pairs` does.
  static __device__ uint32_t beyond(int left) {
    return left >= 64 ? 0 : pastEnd((left + 7) / 8) | pastEnd((left + 6) / 8) << 16;
  }

private:
  /// Bits 0, 2, 4 ... 14 as bits 0 to 7.
  static __device__ uint32_t everySecond(uint32_t x) {
    x &= 0x5555u;
    x = (x | x >> 1) & 0x3333u;
    x = (x | x >> 2) & 0x0f0fu;
    return (x | x >> 4) & 0xffu;
  }
  static __device__ uint32_t pastEnd(int count) { return 0xffu & (count <= 0 ? 0xffu : 0xffu << min(count, 8)); }
};

/// A hidden product and its terms; times any scale that makes sense it is far below all others.
constexpr float kLowest = -0x1p100f; // a power of two: times the scale it is exact
constexpr float kLn2 = 0.693147181f;

/// Products of hidden keys become kLowest, of keys beyond the last -inf. The warp calls.
__device__ inline void hideScores(float (&x)[8][4], const uint32_t (&hides)[2], uint32_t beyond) {
  if (__any_sync(0xffffffffu, hides[0] | hides[1])) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = hides[e / 2] & 1u << (n + e % 2 * 16) ? kLowest : x[n][e];
  }
  if (__any_sync(0xffffffffu, beyond)) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = beyond & 1u << (n + e % 2 * 16) ? -INFINITY : x[n][e];
  }
}

/// One tile of one item. Items are places of a head, batch by batch; a place is 128 rows, and an item has as many tiles
/// as its rows have partners.
struct Step {
  int b = 0, h = 0, row = 0, partner = 0;
  __device__ Step(const AttentionWork &w, int item, int rows) {
    const int tiles = (rows + kSide - 1) / kSide, place = item / w.batch;
    b = item % w.batch, h = place / tiles, row = place % tiles * kSide;
  }
  __device__ void advance(const AttentionWork &w, int rows, int partners) {
    if ((partner += kSide) < partners)
      return;
    partner = 0;
    if (++b < w.batch)
      return;
    b = 0;
    if ((row += kSide) < rows)
      return;
    row = 0, ++h;
  }
  /// Do they need the same rows of positions?
  __device__ bool meetsLike(const Step &other) const {
    return h == other.h && row - partner == other.row - other.partner;
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

/// Column of a band of queries, whose row block begins at local row 16 (i / 16): query i, key j of the tile.
__device__ inline int queryColumn(int i, int j) { return i % 16 - j + kSide - 1; }
/// Of a band of keys, whose row block begins at local row kSide - 16 - 16 (j / 16).
__device__ inline int keyColumn(int i, int j) { return i - j % 16 + 15; }
/// Zeros where no query and key of the tile meet; the rest is written for each tile. The block calls.
template <typename T> __device__ inline void clearQueryBand(T *band) {
#pragma unroll
  for (int e = 0; e < kSide * 16 / kThreads; ++e) {
    const int i = threadIdx.x / 16 + e * (kThreads / 16), c = threadIdx.x % 16;
    band[i * kWideBandPitch + (c < i % 16 ? c : c + kSide)] = T(0.0f);
  }
}
template <typename T> __device__ inline void clearKeyBand(T *band) {
#pragma unroll
  for (int e = 0; e < kSide * 16 / kThreads; ++e) {
    const int j = threadIdx.x / 16 + e * (kThreads / 16), c = threadIdx.x % 16;
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
__device__ inline void copyScores(Place<T> to, const GradientScores &from, const AttentionWork &w, int b, int h, int i0,
                                  int j0) {
  // Columns beyond the pitch are there for some threads alone: none of their rows is real.
  const bool inside = j0 + threadIdx.x % 16 * 8 < from.pitch;
  copyBlock<T, kSide, 16, kScorePitch>(to, from.row<T>(w, b, h, 0) + (inside ? j0 : 0), from.pitch, i0, 0,
                                       inside ? w.queries : 0);
}

/// f(row, column, 8 gradients) for the thread's parts of a tile in shared memory. The lanes of a warp have rows beside each
/// other, which lie in different banks of either band.
template <typename T, typename F> __device__ inline void forGradients(const T *scores, F f) {
#pragma unroll
  for (int e = 0; e < kSide * kSide / 8 / kThreads; ++e) {
    const int r = threadIdx.x % kSide, c = (threadIdx.x / kSide + e * (kThreads / kSide)) * 8;
    f(r, c, *reinterpret_cast<const Pack<T, 8> *>(scores + r * kScorePitch + c));
  }
}

/// dq += scores k + queryBand posKey, of 16 queries from share.own on and 32 elements from `part` on.
template <typename T>
__device__ inline void addQueryGradient(float (&dq)[4][4], const Share &share, int part, Place<T> scores, Place<T> k,
                                        Place<T> queryBand, Place<T> posKey, bool toKeys) {
  multiplyPlain<T, kScorePitch, kSide>(dq, scores + share.own * kScorePitch, k + part);
  if (toKeys)
    multiplyPlain<T, kWideBandPitch, kWideBand>(dq, queryBand + share.own * kWideBandPitch,
                                                posKey + (share.own * kRowPitch + part));
}

/// In: lane q of four has word n of quarter q. Out: word q of quarter n.
__device__ inline void transposeQuad(uint32_t (&x)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
  uint32_t one = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1);
  uint32_t two = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
  if (odd)
    x[0] = one, x[2] = two;
  else
    x[1] = one, x[3] = two;
  one = __shfl_xor_sync(0xffffffffu, high ? x[0] : x[2], 2);
  two = __shfl_xor_sync(0xffffffffu, high ? x[1] : x[3], 2);
  if (high)
    x[0] = one, x[1] = two;
  else
    x[2] = one, x[3] = two;
}

/// A warp's part of a result: 16 rows from `first` on, 32 elements from `column` on, times factor[0] (rows l / 4) and
/// factor[1] (8 more). The warp calls.
template <typename T>
__device__ inline void storePart(const HeadsView &to, int b, int h, int first, int end, int column,
                                 const float (&x)[4][4], float factor0, float factor1) {
  const int lane = threadIdx.x % kWarp, row = first + lane / 4;
  T *at = static_cast<T *>(to.data) + b * to.batch + h * to.head + row * to.row + column + lane % 4 * 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float factor = half ? factor1 : factor0;
    uint32_t words[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
      words[n] = packPair(x[n][2 * half] * factor, x[n][2 * half + 1] * factor, T());
    transposeQuad(words);
    if (row + 8 * half < end)
      *reinterpret_cast<uint4 *>(at + half * 8 * to.row) = {words[0], words[1], words[2], words[3]};
  }
}

inline int tilesOf(int rows) { return (rows + kSide - 1) / kSide; }
/// f(an element, whether there is dropout as a type).
template <typename F> cudaError_t withKind(const RelativeWork &w, F f) {
  auto withType = [&](auto type) {
    return w.base.dropout > 0 ? f(type, std::true_type()) : f(type, std::false_type());
  };
  return w.base.type == ElementType::BF16 ? withType(__nv_bfloat16()) : withType(__half());
}
/// f(an element).
template <typename F> cudaError_t withType(const RelativeWork &w, F f) {
  return w.base.type == ElementType::BF16 ? f(__nv_bfloat16()) : f(__half());
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
