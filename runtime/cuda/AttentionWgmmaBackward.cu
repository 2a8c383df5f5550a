// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements by warpgroups: which kernels serve, and the one for heads of
// at most 128 queries and keys, beside the sum of the bias's gradient over batches.
#include "runtime/cuda/AttentionWgmmaGradient.cuh"

namespace shardc::cuda {
namespace {

/// dbias[h0, i, j] = the sum over chunks, then heads in which the bias is broadcast. `sums` is [chunks, H, Sq, Sk].
__global__ void __launch_bounds__(kWgThreads) addChunks(AttentionWork w, int chunks, const float *sums) {
  const long long *s = w.dbias.strides, each = (long long)(w.queries) * w.keys;
  const long long at = blockIdx.x * (long long)(kWgThreads) + threadIdx.x;
  if (at >= each)
    return;
  const int h0 = blockIdx.y;
  float sum = 0;
  for (int h = h0; h < (s[1] ? h0 + 1 : w.heads); ++h)
#pragma unroll 8
    for (int c = 0; c < chunks; ++c)
      sum += sums[((long long)(c)*w.heads + h) * each + at];
  store(w.dbias.array, h0 * s[1] + at / w.keys * s[2] + at % w.keys * s[3], sum);
}

/// The same of gradients that are stored for each batch: [B, H, Sq, Sk].
template <typename T> __global__ void __launch_bounds__(kWgThreads) addBatches(AttentionWork w, const T *scores) {
  const long long *s = w.dbias.strides, each = (long long)(w.queries) * w.keys;
  const long long at = blockIdx.x * (long long)(kWgThreads) + threadIdx.x;
  if (at >= each)
    return;
  const int h0 = blockIdx.y;
  float sum = 0;
  for (int h = h0; h < (s[1] ? h0 + 1 : w.heads); ++h)
#pragma unroll 8
    for (int b = 0; b < w.batch; ++b)
      sum += widen(scores[((long long)(b)*w.heads + h) * each + at]);
  store(w.dbias.array, h0 * s[1] + at / w.keys * s[2] + at % w.keys * s[3], sum);
}

bool few(const AttentionWork &w) { return w.queries <= kWgRows && w.keys <= kWgRows; }

/// Is the gradient of the bias a sum over batches?
bool sums(const AttentionWork &w) { return w.dbias.array.data && (w.dbias.strides[0] == 0 || w.batch == 1); }

template <typename F> cudaError_t withScores(const AttentionWork &w, F f) {
  if (!w.dbias.array.data)
    return f(std::integral_constant<Scores, Scores::Dropped>());
  return sums(w) ? f(std::integral_constant<Scores, Scores::Summed>())
                 : f(std::integral_constant<Scores, Scores::Stored>());
}

dim3 sumGrid(const AttentionWork &w) {
  return dim3(blocksFor((long long)(w.queries) * w.keys, kWgThreads), w.dbias.strides[1] ? w.heads : 1);
}

cudaError_t enqueueFew(const AttentionWork &w, const GradMaps &maps, float *scratch, cudaStream_t stream) {
  const int chunks = chunksFor(w, w.queries);
  const cudaError_t code = withScores(w, [&](auto scores) {
    return withDrops(w, [&](auto type, auto drops) {
      return enqueue(gradWgmma<decltype(type), Makes::All, decltype(scores)::value, decltype(drops)::value>,
                     dim3(w.heads * chunks), kGradThreads, gradShared(w), stream, w, maps, chunks, scratch);
    });
  });
  if (code != cudaSuccess || !sums(w))
    return code;
  return enqueue(addChunks, sumGrid(w), kWgThreads, 0, stream, w, chunks, static_cast<const float *>(scratch));
}

/// The gradient of the scores is left in the bias's, or is summed from scratch.
cudaError_t enqueueMany(const AttentionWork &w, const GradMaps &maps, float *scratch, cudaStream_t stream) {
  AttentionWork stored = w;
  if (sums(w)) {
    const long long each = (long long)(w.queries) * w.keys, strides[4] = {w.heads * each, each, w.keys, 1};
    stored.dbias.array.data =
        reinterpret_cast<char *>(scratch) + attentionSumsWorkspace(w.batch, w.heads, w.queries, 4);
    for (int d = 0; d < 4; ++d)
      stored.dbias.strides[d] = strides[d];
  }
  cudaError_t code = enqueueAttentionGradWgMany(stored, maps, scratch, stream);
  if (code != cudaSuccess || !sums(w))
    return code;
  return w.type == kBF16 ? enqueue(addBatches<__nv_bfloat16>, sumGrid(w), kWgThreads, 0, stream, w,
                                   static_cast<const __nv_bfloat16 *>(stored.dbias.array.data))
                         : enqueue(addBatches<__half>, sumGrid(w), kWgThreads, 0, stream, w,
                                   static_cast<const __half *>(stored.dbias.array.data));
}

} // namespace

bool servesGradWg(const AttentionWork &w) {
  const long long *s = w.dbias.strides;
  if (!servesWg(w))
    return false;
  if (!w.dbias.array.data)
    return true;
  if (w.dbias.array.type != w.type || (s[2] == 0 && w.queries > 1) || (s[3] == 0 && w.keys > 1))
    return false;
  if (few(w) && sums(w))
    return true;
  // Stored 16 bytes at a time.
  return (sums(w) || s[1] || w.heads == 1) && w.keys % 8 == 0 && uintptr_t(w.dbias.array.data) % 16 == 0;
}

cudaError_t prepareAttentionGradWg(const AttentionWork &w) {
  return !few(w) ? prepareAttentionGradWgMany(w) : withScores(w, [&](auto scores) {
    return withDrops(w, [&](auto type, auto drops) {
      return allowShared(gradWgmma<decltype(type), Makes::All, decltype(scores)::value, decltype(drops)::value>);
    });
  });
}

cudaError_t enqueueAttentionGradWg(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  GradMaps maps;
  if (cudaError_t code = describe(maps, w); code != cudaSuccess)
    return code;
  float *numbers = static_cast<float *>(scratch);
  return few(w) ? enqueueFew(w, maps, numbers, stream) : enqueueMany(w, maps, numbers, stream);
}

long long attentionGradWgScratch(const AttentionWork &w) {
  return attentionTileWorkspace(w.batch, w.heads, w.queries, w.keys, sums(w));
}

} // namespace shardc::cuda
