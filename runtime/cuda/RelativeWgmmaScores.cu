// SPDX-License-Identifier: Apache-2.0
// The first part of the gradient of relative_attention by warpgroups where one tile has all of a head
// (RelativeWgmma.cuh): the gradients of the scores, which stay in scratch memory, and dv. A block for a head
// and some batches.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeRows.cuh"
#include "runtime/cuda/RelativeWgmma.cuh"

namespace shardc::cuda::relative {
namespace {

/// Bytes: for each pair q, k, v, dout, and probabilities of 64 keys; then the positions, and barriers.
constexpr int kWeightsAt = 4 * kWgTile, kEach = kWeightsAt + kWgTile, kPosKeyAt = 2 * kEach,
              kPosQueryAt = kPosKeyAt + kDistancesTile, kBarriersAt = kPosQueryAt + kDistancesTile,
              kBytes = kBarriersAt + 64;
static_assert(kBytes <= kMostAttentionShared);

struct OperandMaps {
  CUtensorMap q, k, v, dout, scores; ///< scores: 64 queries at a time
};

template <typename T, bool kDrops>
__global__ void __launch_bounds__(kThreads, 1)
    gradTile(const __grid_constant__ RelativeWork work, const __grid_constant__ OperandMaps maps,
             const __grid_constant__ PositionMaps positions, int chunks) {
  awaitStream();
  const AttentionWork &w = work.base;
  const WgWork block(w, chunks);
  const int h = block.head, group = warpgroup(), pair = group / 2, lane = threadIdx.x % kWarp,
            side64 = group % 2, // of the queries, and of the elements of dv
      own = threadIdx.x / kWarp % 8 * 16, row = own + lane / 4;
  char *shared = alignedShared(), *posKey = shared + kPosKeyAt, *posQuery = shared + kPosQueryAt;
  char *q = shared + pair * kEach, *k = q + kWgTile, *v = k + kWgTile, *dout = v + kWgTile,
       *weights = dout + kWgTile;
  uint64_t *positionsArrived = reinterpret_cast<uint64_t *>(shared + kBarriersAt),
           *scoresArrived = positionsArrived + 1 + pair, *outsArrived = positionsArrived + 3 + pair;
  const float factor = float(w.scale) * kLog2E;
  const bool leads = threadIdx.x % kPair == 0;
  const bool real[2] = {row < w.queries, row + 8 < w.queries};
  const int rows[2] = {real[0] ? row : 0, real[1] ? row + 8 : 0};
  auto beginScores = [&](int b) { // one thread of the pair, as the next
    expectBytes(scoresArrived, 3 * kWgTile);
    loadTile(q, maps.q, 0, h, b, scoresArrived);
    loadTile(k, maps.k, 0, h, b, scoresArrived);
    loadTile(v, maps.v, 0, h, b, scoresArrived);
  };
  auto beginOuts = [&](int b) {
    expectBytes(outsArrived, kWgTile);
    loadTile(dout, maps.dout, 0, h, b, outsArrived);
  };
  const int first = block.begin + pair;
  if (leads) {
    if (pair == 0)
      beginArrivals(positionsArrived);
    beginArrivals(scoresArrived);
    beginArrivals(outsArrived);
  }
  __syncthreads();
  if (leads && pair == 0)
    beginPositions(work, positions, h, posKey, posQuery, positionsArrived);
  if (leads && first < block.end) {
    beginScores(first);
    beginOuts(first);
  }
  waitForBytes(positionsArrived, 0);
  for (int b = first, item = 0; b < block.end; b += 2, ++item) {
    const bool goesOn = b + 2 < block.end;
    auto shiftOf = [&](int side) {
      return RowShift(load<float>(w.lse, b * w.lseBatch + h * w.lseHead + rows[side]), w.keys, real[side]);
    };
    const RowShift shifts[2] = {shiftOf(0), shiftOf(1)};
    const RowParts<T> out(w.out, b, h, rows);
    waitForBytes(outsArrived, item);
    float deltas[2];
    out.deltas(deltas, dout, row);
    waitForBytes(scoresArrived, item);
#pragma unroll 1
    for (int half = 0; half < kSide; half += 64) {
      WgMask<2> mask;
      mask.begin(w, b, h, half);
      mask.beginRows(w, b, h, rows, half);
      float p[8][4], ds[8][4];
      makeProducts<T>(p, {own, side64 * 64, half}, q, k, posKey, posQuery, work.posKey.data,
                      work.posQuery.data);
      beginProducts();
      beginRows<T>(ds, dout + side64 * kHalfTile, v + half * 128);
      commitProducts();
      mask.arrange(w);
      const int left = w.keys - half - lane % 4 * 2; // keys from the lane's first on
      hideProducts(p, mask, left);
      waitForProducts<0>();
      pinned(ds);
      float weight[8][4], gradient[8][4];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float2 keeps[2] = {{1, 1}, {1, 1}};
        if (kDrops)
          ScoreEffects(w, b, h).keepPairs(keeps, rows, half + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const RowShift &shift = shifts[e / 2];
          const float kept = e % 2 ? keeps[e / 2].y : keeps[e / 2].x;
          const float one = shift.share != 0 ? shift.share : exp2Fast(fmaf(p[n][e], factor, shift.shift));
          weight[n][e] = one * kept;
          gradient[n][e] = one * (kept * ds[n][e] - deltas[e / 2]);
        }
      }
      if (half)
        meet(1 + pair, kPair); // the weights before are used up
      keepTile<T>(weights + side64 * kHalfTile, weight);
      if (mask.hidesAny() || left < 58) {
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if ((mask.hidesAny() && mask.hides(n, e)) || n * 8 + e % 2 >= left)
              gradient[n][e] = 0;
      }
      showToProducts();
      meet(1 + pair, kPair); // the probabilities are there; all but dout is used up for these keys
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
    meet(1 + pair, kPair); // all is used up
    if (leads && goesOn) {
      beginScores(b + 2);
      beginOuts(b + 2);
    }
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
  cudaError_t code = describeRows(maps.q, a, a.q, a.queries, kWgRows);
  if (code == cudaSuccess)
    code = describeRows(maps.k, a, a.k, a.keys, kWgRows);
  if (code == cudaSuccess)
    code = describeRows(maps.v, a, a.v, a.keys, kWgRows);
  if (code == cudaSuccess)
    code = describeRows(maps.dout, a, a.dout, a.queries, kWgRows);
  const long long pitch = to.pitch, head = pitch * a.queries;
  if (code == cudaSuccess)
    code = describeRows(maps.scores, a, {to.data, head * a.heads, pitch, head}, a.queries, 64, to.pitch);
  if (code == cudaSuccess)
    code = describe(positions, w);
  if (code != cudaSuccess)
    return code;
  const int chunks = chunksFor(a, a.keys);
  return withDrops(a, [&](auto type, auto drops) {
    return enqueue(gradTile<decltype(type), decltype(drops)::value>, dim3(a.heads * chunks), kThreads, kBytes,
                   stream, w, maps, positions, chunks);
  });
}

} // namespace shardc::cuda::relative
