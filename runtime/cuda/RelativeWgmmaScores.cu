// SPDX-License-Identifier: Apache-2.0
// The first part of the gradient of relative_attention by warpgroups where one tile has all of a head
// (RelativeWgmma.cuh): the gradients of the scores, which stay in scratch memory, and dv. A block for a head
// and some batches.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeRows.cuh"
#include "runtime/cuda/RelativeWgmma.cuh"

namespace shardc::cuda::relative {
namespace {

using Pair = PairWork<5>; ///< q, k, v, dout, and probabilities of 64 keys

struct OperandMaps {
  CUtensorMap q, k, v, dout, scores; ///< scores: 64 queries at a time
};

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1)
    gradTile(const __grid_constant__ RelativeWork work, const __grid_constant__ OperandMaps maps,
             const __grid_constant__ PositionMaps positions, int chunks) {
  awaitStream();
  const AttentionWork &w = work.base;
  const Pair pair(w, chunks);
  const int h = pair.head, group = warpgroup(), lane = threadIdx.x % kWarp,
            side64 = group % 2, // of the queries, and of the elements of dv
      own = threadIdx.x / kWarp % 8 * 16, row = own + lane / 4;
  char *q = pair.tiles, *k = q + kWgTile, *v = k + kWgTile, *dout = v + kWgTile, *weights = dout + kWgTile;
  const float factor = float(w.scale) * kLog2E;
  auto begin = [&](int b) { // the leader
    expectBytes(pair.scoresArrived, 3 * kWgTile);
    loadTile(q, maps.q, 0, h, b, pair.scoresArrived);
    loadTile(k, maps.k, 0, h, b, pair.scoresArrived);
    loadTile(v, maps.v, 0, h, b, pair.scoresArrived);
    expectBytes(pair.othersArrived, kWgTile);
    loadTile(dout, maps.dout, 0, h, b, pair.othersArrived);
  };
  pair.start(work, positions, begin);
  for (int b = pair.first, item = 0; b < pair.end; b += 2, ++item) {
    GradientRows<T> rows(w, b, h, row);
    waitForBytes(pair.othersArrived, item);
    rows.makeDeltas(dout, row);
    waitForBytes(pair.scoresArrived, item);
#pragma unroll 1
    for (int half = 0; half < kSide; half += 64) {
      WgMask<2> mask;
      mask.begin(w, b, h, half);
      mask.beginRows(w, b, h, rows.at, half);
      float p[8][4], ds[8][4], weight[8][4], gradient[8][4];
      makeProducts<T>(p, {own, side64 * 64, half}, q, k, pair.posKey, pair.posQuery, work.posKey.data,
                      work.posQuery.data);
      beginProducts();
      beginRows<T>(ds, dout + side64 * kHalfTile, v + half * 128);
      commitProducts();
      mask.arrange(w);
      const int left = w.keys - half - lane % 4 * 2; // keys from the lane's first on
      hideScores(p, mask, left);
      waitForProducts<0>();
      pinned(ds);
      rows.template makeGradients<kDrops>(weight, gradient, p, ds, half, factor);
      if (half)
        pair.meetPair(); // the weights before are used up
      keepTile<T>(weights + side64 * kHalfTile, weight);
      hideGradients(gradient, mask, left);
      showToProducts();
      pair.meetPair(); // the probabilities are there; all but dout is used up for these keys
      float dv[4][4];
      beginProducts();
      const uint64_t transposed = matrixAt(weights), others = matrixAt(dout + side64 * 64);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        multiply<T, true, true>(dv, further(transposed, i * 2048), further(others, i * 2048), i > 0);
      commitProducts();
      char *place = (side64 ? v : k) + half * 128; // which nobody wants any more
      keepTile<T>(place, gradient);
      showToProducts();
      meet(3 + group, kWarpgroup);
      if (threadIdx.x % kWarpgroup == 0) {
        storeTile(maps.scores, place, side64 * 64, h, b, half);
        commitStores();
      }
      waitForProducts<0>();
      pinned(dv);
      const int key = half + threadIdx.x / kWarp % 4 * 16;
      const float one[2] = {1, 1};
      storeWide(headRow<T>(w.dv, b, h, key) + side64 * 32, w.dv.row, w.keys - key, dv, one);
    }
    if (threadIdx.x % kWarpgroup == 0)
      waitForStores();
    pair.meetPair(); // all is used up
    if (pair.leads && b + 2 < pair.end)
      begin(b + 2);
  }
}

} // namespace

cudaError_t prepareTileScores(const RelativeWork &w) {
  return withDrops(w.base, [](auto type, auto drops) {
    return allowShared(gradTile<decltype(type), decltype(drops)::value>);
  });
}

cudaError_t enqueueTileScores(const RelativeWork &w, const GradientScores &to, cudaStream_t stream) {
  const AttentionWork &a = w.base;
  OperandMaps maps;
  PositionMaps positions;
  cudaError_t code = describeRows(a, {{maps.q, a.q, a.queries, kWgRows},
                                      {maps.k, a.k, a.keys, kWgRows},
                                      {maps.v, a.v, a.keys, kWgRows},
                                      {maps.dout, a.dout, a.queries, kWgRows},
                                      {maps.scores, to.heads(a), a.queries, 64, to.pitch}});
  if (code == cudaSuccess)
    code = describe(positions, w);
  if (code != cudaSuccess)
    return code;
  const int chunks = chunksFor(a, a.keys);
  return withDrops(a, [&](auto type, auto drops) {
    return enqueue(gradTile<decltype(type), decltype(drops)::value>, dim3(a.heads * chunks), kThreads,
                   Pair::kBytes, stream, w, maps, positions, chunks);
  });
}

} // namespace shardc::cuda::relative
