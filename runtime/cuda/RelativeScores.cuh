// SPDX-License-Identifier: Apache-2.0
// Scores of relative_attention by the tensor cores, in registers. A tile of 128 queries and 128 keys meets at
// 255 distances: the local row of query y and key x is y - x + 127. The product of 16 queries with the
// distances that they meet is a band, each row of which begins one distance later than the row before; so is
// that of distances with 16 keys, by columns. Lanes exchange what they hold, so that each has of both bands
// what belongs to its scores.
//
// That takes one exchange for two numbers, since keys lie in shared memory with bits 0 and 3 of their row
// swapped: lane l holds x[2 m + t][2 s + e] = query l / 4 + 8 s, key 16 m + 8 e + 2 (l % 4) + t of its
// warp's.
#pragma once

#include "runtime/cuda/RelativeTiles.cuh"

namespace shardc::cuda::relative {

/// What the warps compute of a tile of scores: 16 queries from `own` and 64 keys from `half` on, a warpgroup
/// 64 queries.
struct Share {
  int warp, lane, own, half;
  __device__ Share()
      : warp(threadIdx.x / kWarp), lane(threadIdx.x % kWarp), own(warpgroup() % 2 * 64 + warp % 4 * 16),
        half(warpgroup() / 2 * 64) {}
};

__device__ inline float2 unpackPair(uint32_t pair, __nv_bfloat16) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
__device__ inline float2 unpackPair(uint32_t pair, __half) {
  return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
}

/// x[2 m + t][2 s], x[2 m + t][2 s + 1] += the pair.
template <typename T> __device__ inline void addPair(float &first, float &second, uint32_t pair) {
  const float2 both = unpackPair(pair, T());
  first += both.x, second += both.y;
}

/// x = q k^T + k posQuery^T, the latter if kTerms. `rows`: the warp's queries.
template <typename T, bool kTerms>
__device__ inline void multiplyKeys(float (&x)[8][4], const Share &share, const uint32_t (&rows)[4][4],
                                    const char *k, const char *posQuery) {
  const int lane = share.lane, r = lane / 4, c = lane % 4;
  const RowAddress keys(k, share.half + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  // Keys 16 m and on meet 31 distances from here - 16 m on, in two blocks; the upper one is the lower of m
  // - 1.
  const RowAddress distances(posQuery, share.own - share.half + kSide - 16 + lane % 16, lane / 16);
  uint32_t block[4][4];
  if (kTerms) {
#pragma unroll
    for (int d = 0; d < 4; ++d)
      loadMatricesAt(block[d], distances.at[d] + 16 * 128);
  }
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    float lower[2][4] = {}, upper[2][4] = {};
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[2 * m + t][e] = 0;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      uint32_t right[4];
      loadMatricesAt(right, keys.at[d] + m * 16 * 128);
      multiplyAdd(x[2 * m], rows[d], right[0], right[1], T());
      multiplyAdd(x[2 * m + 1], rows[d], right[2], right[3], T());
      if (kTerms) {
        multiplyAdd(upper[0], block[d], right[0], right[1], T());
        multiplyAdd(upper[1], block[d], right[2], right[3], T());
        loadMatricesAt(block[d], distances.at[d] - m * 16 * 128);
        multiplyAdd(lower[0], block[d], right[0], right[1], T());
        multiplyAdd(lower[1], block[d], right[2], right[3], T());
      }
    }
    if (kTerms) {
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        // Query row 8 s + r and key column 8 e + 2 c + t meet at row 8 (1 + s - e) + (7 + r - 2 c - t) of
        // the 32.
        const bool further = r + 2 * c + t < 7; // of the lane that it goes to, the latter is above 7
        const int from = (7 + r - 2 * c - t) % 8 * 4 + c;
        const uint32_t one = packPair(lower[t][2], lower[t][1], T()),
                       two = packPair(upper[t][0], lower[t][3], T()),
                       three = packPair(upper[t][2], upper[t][1], T());
        addPair<T>(x[2 * m + t][0], x[2 * m + t][1], __shfl_sync(0xffffffffu, further ? two : one, from));
        addPair<T>(x[2 * m + t][2], x[2 * m + t][3], __shfl_sync(0xffffffffu, further ? three : two, from));
      }
    }
  }
}

/// What a lane adds to its scores: words [m][2 s + t], rounded, of keys 16 m + 2 (l % 4) + t and 8 more of
/// its query l / 4 + 8 s.
using Terms = uint32_t[4][4];

/// A warp's 16 rows of a tile from `first` on, as the left side of products.
__device__ inline void loadRows(uint32_t (&rows)[4][4], const char *tile, int first) {
  const RowAddress from(tile, first + threadIdx.x % 16, threadIdx.x % kWarp / 16);
#pragma unroll
  for (int d = 0; d < 4; ++d)
    loadMatricesAt(rows[d], from.at[d]);
}

/// q posKey^T of the warp's queries, from `own` on, and 64 keys from `half` on.
template <typename T>
__device__ inline void makeQueryTerms(Terms &terms, int own, int half, const uint32_t (&rows)[4][4],
                                      const char *posKey) {
  const int lane = threadIdx.x % kWarp, r = lane / 4, c = lane % 4;
  const RowAddress distances(posKey, own - half + 64 + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  // Query row 8 s + r and key column 16 m + 8 e + 2 c + t meet at column 8 (7 + s - 2 m - e) + (7 + r - 2 c -
  // t).
  uint32_t band[10][2];
#pragma unroll
  for (int n = 8; n >= 0; n -= 2) {
    float two[2][4] = {};
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      uint32_t right[4];
      loadMatricesAt(right, distances.at[d] + n * 8 * 128);
      multiplyAdd(two[0], rows[d], right[0], right[1], T());
      multiplyAdd(two[1], rows[d], right[2], right[3], T());
    }
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      band[n][s] = packPair(two[0][2 * s], two[0][2 * s + 1], T());
      band[n + 1][s] = packPair(two[1][2 * s], two[1][2 * s + 1], T());
    }
    if (n == 8)
      continue;
    const int m = (6 - n) / 2;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int pair = (7 + r - t) / 2, from = r * 4 + (pair - c) % 4;
      const bool further = pair - c > 3; // of the lane that it goes to, the column's second part is above 7
      const uint32_t halves = (r + t) % 2 ? 0x5410 : 0x7632;
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const uint32_t first = further ? band[n + 2 + s][s] : band[n + 1 + s][s],
                       second = further ? band[n + 1 + s][s] : band[n + s][s];
        terms[m][2 * s + t] = __shfl_sync(0xffffffffu, __byte_perm(first, second, halves), from);
      }
    }
  }
}

/// Scores, or other products with such keys, as a lane holds them for what follows: x[n][e] = query l / 4 + 8
/// (e / 2), key 8 n + 2 (l % 4) + e % 2 of its warp's.
__device__ inline void inKeyOrder(float (&x)[8][4]) {
  float swapped[8][4];
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      swapped[n][e] = x[n][e];
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      x[n][e] = swapped[n / 2 * 2 + e % 2][e / 2 * 2 + n % 2];
}

/// Products and their terms, where `toKeys` and `toQueries` say that they are there, in the order of keys. Of
/// tiles in shared memory, posKey and posQuery of kDistances rows.
template <typename T>
__device__ inline void makeScores(float (&x)[8][4], const Share &share, const char *q, const char *k,
                                  const char *posKey, const char *posQuery, bool toKeys, bool toQueries) {
  uint32_t rows[4][4];
  loadRows(rows, q, share.own);
  if (toQueries)
    multiplyKeys<T, true>(x, share, rows, k, posQuery);
  else
    multiplyKeys<T, false>(x, share, rows, k, posQuery);
  if (toKeys) {
    Terms terms;
    makeQueryTerms<T>(terms, share.own, share.half, rows, posKey);
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int s = 0; s < 2; ++s)
          addPair<T>(x[2 * m + t][2 * s], x[2 * m + t][2 * s + 1], terms[m][2 * s + t]);
  }
  inKeyOrder(x);
}

/// A hidden product and its terms; times any scale that makes sense it is far below all others.
constexpr float kLowest = -0x1p100f; // a power of two: times the scale it is exact
constexpr float kLn2 = 0.693147181f;

/// Products of hidden keys become kLowest, of keys from `left` (< 58) on -inf; `left` counts from the lane's
/// first key on.
__device__ inline void hideScores(float (&x)[8][4], const WgMask<2> &mask, int left) {
  if (mask.hidesAny()) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = mask.hides(n, e) ? kLowest : x[n][e];
  }
  if (left < 58) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[n][e] = n * 8 + e % 2 < left ? x[n][e] : -INFINITY;
  }
}

} // namespace shardc::cuda::relative
