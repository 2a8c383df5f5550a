// SPDX-License-Identifier: Apache-2.0
// The first part of the gradient of relative_attention by the tensor cores: a block for 128 keys of a head, which
// walks over the queries, computes each probability once, leaves the gradients of the scores in scratch memory, and
// makes dv.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"
#include "runtime/cuda/RelativeRows.cuh"

namespace shardc::cuda::relative {
namespace {

/// Bytes: two stages of q, k, v and dout; then the positions, and the probabilities as two tiles of 64 keys.
constexpr int kStage = 4 * kWgTile, kPosKeyAt = 2 * kStage, kPosQueryAt = kPosKeyAt + kDistancesTile,
              kWeightsAt = kPosQueryAt + kDistancesTile, kBytes = kWeightsAt + 2 * kWgTile;
static_assert(kBytes <= kMostAttentionShared);

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1) gradScores(RelativeWork work, GradientScores to) {
  awaitStream();
  const AttentionWork &w = work.base;
  const int distances = w.queries + w.keys - 1;
  char *shared = alignedShared(), *posKey = shared + kPosKeyAt, *posQuery = shared + kPosQueryAt,
       *weights = shared + kWeightsAt;
  const Share share;
  const int lane = share.lane, half = share.half,
            part = share.own / 64; // of the elements of dv; its keys are from `half` on
  const float factor = float(w.scale) * kLog2E;
  const bool toKeys = work.posKey.data, toQueries = work.posQuery.data;
  // Rows of a step are keys here, its partners queries.
  auto begin = [&](const Step &s, char *stage) {
    copyTile(stage, w.q, s.b, s.h, s.partner, w.queries, T());
    copyTile<true>(stage + kWgTile, w.k, s.b, s.h, s.row, w.keys, T());
    copyTile<true>(stage + 2 * kWgTile, w.v, s.b, s.h, s.row, w.keys, T());
    copyTile(stage + 3 * kWgTile, w.dout, s.b, s.h, s.partner, w.queries, T());
  };
  auto beginPositions = [&](const Step &s) {
    const int first = firstDistance(s.partner, s.row, w.keys);
    copyDistances(posKey, work.posKey, s.h, first, distances, T());
    copyDistances(posQuery, work.posQuery, s.h, first, distances, T());
  };
  const Portion portion(w.batch * w.heads * ((w.keys + kSide - 1) / kSide));
  const int count = (portion.end - portion.first) * ((w.queries + kSide - 1) / kSide);
  if (count == 0)
    return;
  Step step(w, portion.first, w.keys);
  begin(step, shared);
  beginPositions(step);
  float dv[4][4];
  for (int number = 0; number < count; ++number) {
    Step next = step;
    next.advance(w, w.keys, w.queries);
    const bool goesOn = number + 1 < count, moves = goesOn && !next.meetsLike(step), ends = next.partner == 0;
    const char *q = shared + number % 2 * kStage, *k = q + kWgTile, *v = k + kWgTile, *dout = v + kWgTile;
    const int firstKey = step.row + half, row = step.partner + share.own + lane / 4;
    GradientRows<T> rows(w, step.b, step.h, row);
    WgMask<2> mask;
    mask.begin(w, step.b, step.h, firstKey);
    mask.beginRows(w, step.b, step.h, rows.at, firstKey);
    waitForCopies();
    showToProducts();
    __syncthreads(); // this tile is there, and the one before is used up
    if (goesOn)
      begin(next, shared + (number + 1) % 2 * kStage);
    rows.makeDeltas(dout, share.own + lane / 4);
    float p[8][4], ds[8][4], weight[8][4], gradient[8][4];
    makeScores<T>(p, share, q, k, posKey, posQuery, toKeys, toQueries);
    beginProducts();
    {
      const uint64_t left = matrixAt(dout + part * kHalfTile), right = matrixAt(v + half / 64 * kHalfTile);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        multiply<T, false, false>(ds, further(left, d * 32), further(right, d * 32), d > 0);
      commitProducts();
    }
    mask.arrange(w);
    const int left = w.keys - firstKey - lane % 4 * 2; // keys from the lane's first on
    hideScores(p, mask, left);
    waitForProducts<0>();
    pinned(ds);
    inKeyOrder(ds);
    rows.template makeGradients<kDrops>(weight, gradient, p, ds, firstKey, factor);
    keepTile<T>(weights + half / 64 * kWgTile + part * kHalfTile, weight);
    hideGradients(gradient, mask, left);
    showToProducts();
    __syncthreads(); // the probabilities are there; positions are used up
    beginProducts();
    {
      const uint64_t left = matrixAt(weights + half / 64 * kWgTile), right = matrixAt(dout + part * 64);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        multiply<T, true, true>(dv, further(left, i * 2048), further(right, i * 2048), step.partner > 0 || i > 0);
      commitProducts();
    }
    if (moves)
      beginPositions(next);
    const float one[2] = {1, 1};
    const int top = row - lane / 4;
    storeWide(to.row<T>(w, step.b, step.h, top) + firstKey, to.pitch, w.queries - top, gradient, one,
              to.pitch - firstKey);
    waitForProducts<0>();
    pinned(dv);
    if (ends) {
      const int key = firstKey + share.warp % 4 * 16;
      storeWide(headRow<T>(w.dv, step.b, step.h, key) + part * 32, w.dv.row, w.keys - key, dv, one);
    }
    step = next;
  }
}

} // namespace

cudaError_t prepareGradScores(const RelativeWork &w) {
  return withDrops(w.base, [](auto type, auto drops) {
    return allowShared(gradScores<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueGradScores(const RelativeWork &w, const GradientScores &to, cudaStream_t stream) {
  const dim3 grid(blocksOf((long long)(w.base.batch) * w.base.heads * tilesOf(w.base.keys)));
  return withDrops(w.base, [&](auto type, auto drops) {
    return enqueue(gradScores<decltype(type), decltype(drops)::value>, grid, kThreads, kBytes, stream, w, to);
  });
}

} // namespace shardc::cuda::relative
