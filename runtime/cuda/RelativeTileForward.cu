// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/AttentionTileForward.cuh"
#include "runtime/cuda/RelativeTile.cuh"

namespace shardc::cuda {

int relativeShared(const RelativeWork &w) { return attendShared<DistanceScores>(w.base); }
cudaError_t prepareRelative(const RelativeWork &w) { return prepareAttend<DistanceScores>(w.base); }
cudaError_t enqueueRelative(const RelativeWork &w, void *, cudaStream_t stream) {
  return enqueueAttend<DistanceScores>(w, stream);
}

} // namespace shardc::cuda
