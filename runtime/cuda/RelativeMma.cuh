// SPDX-License-Identifier: Apache-2.0
// What the tensor-core kernels of relative_attention share: how they go through tiles of 128 queries and 128 keys
// of a head, and what they leave for each other in scratch memory.
#pragma once

#include "ir/base/Workspace.h"
#include "runtime/cuda/RelativeScores.cuh"

namespace shardc::cuda::relative {

/// One tile of one item. Items are places of a head, batch by batch; a place is 128 rows, and an item has as many
/// tiles as its rows have partners.
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

/// The gradients of scores in scratch memory: [B, H, Sq, pitch] of 16 bits.
struct GradientScores {
  void *data;
  int pitch;
  static __host__ __device__ int pitchOf(int keys) { return (keys + 7) / 8 * 8; }
  HeadsView heads(const AttentionWork &w) const {
    const long long row = pitch, head = row * w.queries;
    return {data, head * w.heads, row, head};
  }
  template <typename T> __device__ T *row(const AttentionWork &w, int b, int h, int i) const {
    return static_cast<T *>(data) + (((long long)(b)*w.heads + h) * w.queries + i) * pitch;
  }
};

/// A tile of them as two tiles of 64 keys, zeros outside: begun.
template <typename T>
__device__ inline void copyScores(char *to, const GradientScores &from, const AttentionWork &w, int b, int h,
                                  int i0, int j0, T) {
  copySwizzled<kSide, 16>(to, from.row<T>(w, b, h, 0) + j0, from.pitch, i0, 1, w.queries,
                          j0 + threadIdx.x % 16 * 8 < from.pitch);
}

/// How the batch is cut for the sums of dpos_key and dpos_query.
__host__ __device__ inline RelativeParts partsOf(const AttentionWork &w) {
  return relativeParts(w.batch, w.heads, w.queries, w.keys);
}
constexpr int kPartialSize = kDistances * kDepth;
static_assert(kPartialSize * sizeof(float) == kRelativeSumBytes && kSide == kAttentionRows);
/// Where the sum of part p, diagonal d, term t (0: keys) and head h lies.
__device__ inline long long partialAt(const AttentionWork &w, const RelativeParts &parts, int p, int d, int t,
                                      int h) {
  return ((((long long)(p)*parts.diagonals + d) * 2 + t) * w.heads + h) * kPartialSize;
}
/// Of the lane's two rows: `row`, and that of 8 more steps if it is one.
__device__ inline void storePartial(float *to, int row, int step, const float (&x)[8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = row + 8 * half * step;
    if (r < 0)
      continue;
    float *at = to + r * kDepth + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < 8; ++n)
      *reinterpret_cast<float2 *>(at + n * 8) = {x[n][2 * half], x[n][2 * half + 1]};
  }
}

inline unsigned tilesOf(int rows) { return unsigned(rows + kSide - 1) / kSide; }
/// f(an element).
template <typename F> cudaError_t withType(const RelativeWork &w, F f) {
  return w.base.type == ElementType::BF16 ? f(__nv_bfloat16()) : f(__half());
}

/// Where one tile has all of a head (RelativeWgmma.cuh): forward; of the gradient first the gradients of scores, and
/// dv, then the rest. `partials`: gradPositionsScratch bytes.
inline bool isOneTile(const RelativeWork &w) {
  const AttentionWork &a = w.base;
  bool copies = a.queries <= kSide && a.keys <= kSide; // the device by itself, if each row has its place
  for (const HeadsView &v : {a.q, a.k, a.v, a.out, a.dout, a.dq, a.dk})
    copies = copies && (!v.data || (v.row > 0 && (v.head > 0 || a.heads == 1) && (v.batch > 0 || a.batch == 1)));
  for (const PositionsView &v : {w.posKey, w.posQuery})
    copies = copies && (!v.data || (v.row > 0 && (v.head > 0 || a.heads == 1)));
  return copies;
}
cudaError_t prepareTile(const RelativeWork &);
cudaError_t prepareTileScores(const RelativeWork &);
cudaError_t prepareTileSums(const RelativeWork &);
cudaError_t enqueueTile(const RelativeWork &, cudaStream_t);
cudaError_t enqueueTileScores(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t enqueueTileSums(const RelativeWork &, const GradientScores &, float *partials, cudaStream_t);

/// The parts of the gradient elsewhere: the gradients of scores, and dv; dq and dk from them; dpos_key and dpos_query.
cudaError_t prepareGradScores(const RelativeWork &);
cudaError_t enqueueGradScores(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradRows(const RelativeWork &);
cudaError_t enqueueGradRows(const RelativeWork &, const GradientScores &, cudaStream_t);
cudaError_t prepareGradPositions(const RelativeWork &);
cudaError_t enqueueGradPositions(const RelativeWork &, const GradientScores &, float *partials, cudaStream_t);
long long gradPositionsScratch(const RelativeWork &);
/// dpos_key and dpos_query from what the blocks left, part by part.
cudaError_t enqueueJoinParts(const RelativeWork &, const float *partials, cudaStream_t);

} // namespace shardc::cuda::relative
