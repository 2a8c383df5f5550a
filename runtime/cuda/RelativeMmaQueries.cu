// SPDX-License-Identifier: Apache-2.0
// dq of relative_attention from the gradients of the scores, by the tensor cores: a block for 128 queries of a head.
#include "ir/base/Workspace.h"
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda {
namespace relative {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) gradQueries(RelativeWork work, GradientScores scores) {
  const AttentionWork &w = work.base;
  const int tiles = (w.queries + kSide - 1) / kSide;
  const int i0 = blockIdx.x % tiles * kSide, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const Place<T> k = Place<T>::first(), posKey = k + kTileSize, gradients = posKey + kDistancesSize;
  const Place<T> queryBand = gradients + kScoresSize;
  const Share share;
  const int part = share.warp % 2 * 32;
  const bool toKeys = work.posKey.data;
  float dq[4][4] = {};
  if (toKeys)
    clearQueryBand(queryBand.data);
  for (int j0 = 0; j0 < w.keys; j0 += kSide) {
    if (j0)
      __syncthreads(); // the tile before is used up
    copyTile(k, w.k, b, h, j0, w.keys);
    copyScores(gradients, scores, w, b, h, i0, j0);
    if (toKeys)
      copyDistances(posKey, work.posKey, h, firstDistance(i0, j0, w.keys), w.queries + w.keys - 1);
    waitForCopies();
    __syncthreads();
    if (toKeys) {
      forGradients(gradients.data, [&](int i, int j, const Pack<T, 8> &several) {
        T *ofQuery = queryBand.data + i * kWideBandPitch + queryColumn(i, j);
#pragma unroll
        for (int l = 0; l < 8; ++l)
          ofQuery[-l] = several.at[l];
      });
      __syncthreads();
    }
    addQueryGradient(dq, share, part, gradients, k, queryBand, posKey, toKeys);
  }
  storePart<T>(w.dq, b, h, i0 + share.own, w.queries, part, dq, float(w.scale), float(w.scale));
}

constexpr int kBytes = (kTileSize + kDistancesSize + kScoresSize + kWideBandSize) * 2;

} // namespace

cudaError_t prepareGradQueries(const RelativeWork &w) {
  return withType(w, [](auto type) { return allowShared(gradQueries<decltype(type)>); });
}

cudaError_t enqueueGradQueries(const RelativeWork &w, const GradientScores &scores, cudaStream_t stream) {
  const dim3 grid(unsigned(w.base.batch) * w.base.heads * tilesOf(w.base.queries));
  return withType(
      w, [&](auto type) { return enqueue(gradQueries<decltype(type)>, grid, kThreads, kBytes, stream, w, scores); });
}

/// Scratch: the gradients of the scores, then what the position gradients want.
static long long scoresBytes(const AttentionWork &w) {
  return relativeScoresWorkspace(w.batch, w.heads, w.queries, w.keys);
}

} // namespace relative

long long relativeGradMmaScratch(const RelativeWork &w) {
  return relative::scoresBytes(w.base) + relative::gradPositionsScratch(w);
}

cudaError_t prepareRelativeGradMma(const RelativeWork &w) {
  using namespace relative;
  cudaError_t code = prepareGradKeys(w);
  if (code == cudaSuccess)
    code = prepareGradQueries(w);
  return code == cudaSuccess ? prepareGradPositions(w) : code;
}

cudaError_t enqueueRelativeGradMma(const RelativeWork &w, void *scratch, cudaStream_t stream) {
  using namespace relative;
  const GradientScores scores{scratch, GradientScores::pitchOf(w.base.keys)};
  cudaError_t code = enqueueGradKeys(w, scores, stream);
  if (code == cudaSuccess && !queriesWithPositions(w))
    code = enqueueGradQueries(w, scores, stream);
  if (code == cudaSuccess)
    code = enqueueGradPositions(w, scores,
                                reinterpret_cast<float *>(static_cast<char *>(scratch) + scoresBytes(w.base)), stream);
  return code;
}

} // namespace shardc::cuda
