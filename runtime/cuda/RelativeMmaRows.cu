// SPDX-License-Identifier: Apache-2.0
// The second part of the gradient of relative_attention where a head is more than a tile: dq and dk from the
// gradients of the scores, a block for 128 rows of a head. And the gradient as a whole.
#include "runtime/cuda/Enqueue.cuh"
#include "runtime/cuda/RelativeBand.cuh"
#include "runtime/cuda/RelativeMma.cuh"

namespace shardc::cuda {
namespace relative {
namespace {

/// Bytes from the start of shared memory: the partners' rows, the gradients of a tile, their band, the positions.
constexpr int kScoresAt = kWgTile, kBandAt = kScoresAt + 2 * kWgTile, kPositionsAt = kBandAt + kBand,
              kBytes = kPositionsAt + kDistancesTile;

/// dq, or dk if kTurned. Of a half of the rows and a half of the elements a warpgroup.
template <typename T, bool kTurned>
__global__ void __launch_bounds__(kThreads, 1) gradRows(RelativeWork work, GradientScores scores) {
  awaitStream();
  const AttentionWork &w = work.base;
  const int rows = kTurned ? w.keys : w.queries, partners = kTurned ? w.queries : w.keys,
            tiles = (rows + kSide - 1) / kSide;
  const int row0 = blockIdx.x % tiles * kSide, h = blockIdx.x / tiles % w.heads, b = blockIdx.x / tiles / w.heads;
  const int group = warpgroup(), half = group / 2, part = group % 2;
  const PositionsView &positions = kTurned ? work.posQuery : work.posKey;
  char *shared = alignedShared(), *gradients = shared + kScoresAt, *band = shared + kBandAt;
  float x[4][4];
  clearBand(band);
  for (int partner = 0; partner < partners; partner += kSide) {
    const int i0 = kTurned ? partner : row0, j0 = kTurned ? row0 : partner;
    if (partner)
      __syncthreads(); // the tile before is used up
    copyTile(shared, kTurned ? w.q : w.k, b, h, partner, partners, T());
    copyScores(gradients, scores, w, b, h, i0, j0, T());
    const int first = firstDistance(i0, j0, w.keys), distances = w.queries + w.keys - 1;
    kTurned ? copyDistancesBack(shared + kPositionsAt, positions, h, first, distances, T())
            : copyDistances(shared + kPositionsAt, positions, h, first, distances, T());
    waitForCopies();
    if (positions.data) {
      __syncthreads();
      makeBand<kTurned>(band, gradients);
    }
    showToProducts();
    __syncthreads();
    beginProducts();
    multiplyGradients<T, kTurned>(x, gradients, shared + part * 64, half, partner > 0);
    if (positions.data)
      addDistances<T>(x, band, shared + kPositionsAt + part * 64, half);
    commitProducts();
    waitForProducts<0>();
    pinned(x);
  }
  const int row = row0 + half * 64 + threadIdx.x / kWarp % 4 * 16;
  const float factors[2] = {float(w.scale), float(w.scale)};
  const HeadsView &to = kTurned ? w.dk : w.dq;
  storeWide(headRow<T>(to, b, h, row) + part * 32, to.row, rows - row, x, factors);
}

} // namespace

cudaError_t prepareGradRows(const RelativeWork &w) {
  return withType(w, [](auto type) {
    const cudaError_t code = allowShared(gradRows<decltype(type), false>);
    return code == cudaSuccess ? allowShared(gradRows<decltype(type), true>) : code;
  });
}

cudaError_t enqueueGradRows(const RelativeWork &w, const GradientScores &scores, cudaStream_t stream) {
  const unsigned heads = unsigned(w.base.batch) * w.base.heads;
  return withType(w, [&](auto type) {
    using T = decltype(type);
    const cudaError_t code =
        enqueue(gradRows<T, false>, dim3(heads * tilesOf(w.base.queries)), kThreads, kBytes, stream, w, scores);
    return code != cudaSuccess ? code
                               : enqueue(gradRows<T, true>, dim3(heads * tilesOf(w.base.keys)), kThreads, kBytes,
                                         stream, w, scores);
  });
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
  if (isOneTile(w)) {
    const cudaError_t code = prepareTileScores(w);
    return code == cudaSuccess ? prepareTileSums(w) : code;
  }
  cudaError_t code = prepareGradScores(w);
  if (code == cudaSuccess)
    code = prepareGradRows(w);
  return code == cudaSuccess ? prepareGradPositions(w) : code;
}

cudaError_t enqueueRelativeGradMma(const RelativeWork &w, void *scratch, cudaStream_t stream) {
  using namespace relative;
  const GradientScores scores{scratch, GradientScores::pitchOf(w.base.keys)};
  float *partials = reinterpret_cast<float *>(static_cast<char *>(scratch) + scoresBytes(w.base));
  if (isOneTile(w)) {
    const cudaError_t code = enqueueTileScores(w, scores, stream);
    return code == cudaSuccess ? enqueueTileSums(w, scores, partials, stream) : code;
  }
  cudaError_t code = enqueueGradScores(w, scores, stream);
  if (code == cudaSuccess)
    code = enqueueGradRows(w, scores, stream);
  return code == cudaSuccess ? enqueueGradPositions(w, scores, partials, stream) : code;
}

} // namespace shardc::cuda
