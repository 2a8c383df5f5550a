// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/AttentionTileForward.cuh"

namespace shardc::cuda {

int attentionShared(const AttentionWork &w) { return attendShared<PlainScores>(w); }
cudaError_t prepareAttention(const AttentionWork &w) { return prepareAttend<PlainScores>(w); }
cudaError_t enqueueAttention(const AttentionWork &w, void *, cudaStream_t stream) {
  return enqueueAttend<PlainScores>(w, stream);
}

} // namespace shardc::cuda
