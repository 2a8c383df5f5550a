// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements by warpgroups: which kernels serve, the one for heads of at
// most 128 queries and keys, and the sum of the bias's gradient over the batches or heads in which it is broadcast.
#include "runtime/cuda/AttentionWgmmaGradient.cuh"

namespace shardc::cuda {
namespace {

constexpr int kSumWidth = 4;

/// dbias[b0, h0, i, j] = the sum over heads, then batches, of `scores` [batch, H, Sq, Sk]. Keys are a multiple of
/// kSumWidth.
template <typename T, typename From>
__global__ void __launch_bounds__(kWgThreads) addScores(AttentionWork w, const From *scores, int batch) {
  awaitStream();
  const long long *s = w.dbias.strides, each = (long long)(w.queries) * w.keys;
  const long long at = (blockIdx.x * (long long)(kWgThreads) + threadIdx.x) * kSumWidth;
  if (at >= each)
    return;
  const bool ownBatch = s[0], ownHead = s[1];
  const int h0 = ownHead ? blockIdx.y : 0, b0 = ownBatch ? blockIdx.z : 0;
  float sum[kSumWidth] = {};
  for (int h = h0; h < (ownHead ? h0 + 1 : w.heads); ++h) {
    const From *from = scores + h * each + at;
#pragma unroll 8
    for (int b = b0; b < (ownBatch ? b0 + 1 : batch); ++b) {
      float several[kSumWidth];
      loadPack(from + b * (w.heads * each), several);
#pragma unroll
      for (int l = 0; l < kSumWidth; ++l)
        sum[l] += several[l];
    }
  }
  T *to = static_cast<T *>(w.dbias.array.data) + b0 * s[0] + h0 * s[1] + at / w.keys * s[2] + at % w.keys * s[3];
#pragma unroll
  for (int l = 0; l < kSumWidth; ++l)
    to[l * s[3]] = narrow<T>(sum[l]);
}

bool few(const AttentionWork &w) { return w.queries <= kWgRows && w.keys <= kWgRows; }

/// Is the gradient of the bias a sum of those of scores?
bool sumsBatches(const AttentionWork &w) {
  return w.dbias.array.data && w.dbias.strides[0] == 0 && w.batch > 1;
}
bool sums(const AttentionWork &w) {
  return sumsBatches(w) || (w.dbias.array.data && w.dbias.strides[1] == 0 && w.heads > 1);
}
/// By blocks that each have one tile of scores in all of their batches?
bool sumsInBlocks(const AttentionWork &w) { return few(w) && sumsBatches(w); }

/// f(an element, are probabilities dropped?, what becomes of the gradient of scores)
template <typename F> cudaError_t withVariant(const AttentionWork &w, F f) {
  return withDrops(w, [&](auto type, auto drops) {
    auto with = [&](auto scores) { return f(type, drops, scores); };
    if (!w.dbias.array.data)
      return with(std::integral_constant<Scores, Scores::Dropped>());
    return sumsInBlocks(w) ? with(std::integral_constant<Scores, Scores::Summed>())
                           : with(std::integral_constant<Scores, Scores::Stored>());
  });
}

cudaError_t enqueueFew(const AttentionWork &w, const GradMaps &maps, float *sums, cudaStream_t stream) {
  const int chunks = chunksFor(w, w.queries);
  return withVariant(w, [&](auto type, auto drops, auto scores) {
    return enqueue(gradWgmma<decltype(type), Makes::All, decltype(scores)::value, decltype(drops)::value>,
                   dim3(w.heads * chunks), kWgThreads, gradShared(w), stream, w, maps, chunks, sums);
  });
}

template <typename T, typename From>
cudaError_t enqueueSum(const AttentionWork &w, const From *scores, int batch, cudaStream_t stream) {
  const long long *s = w.dbias.strides;
  const dim3 grid(blocksFor((long long)(w.queries) * w.keys, kSumWidth * kWgThreads), s[1] ? w.heads : 1,
                  s[0] ? w.batch : 1);
  return enqueue(addScores<T, From>, grid, kWgThreads, 0, stream, w, scores, batch);
}

/// Of gradients of scores of batches as stored, or their sums in chunks.
template <typename T> cudaError_t enqueueSum(const AttentionWork &w, const void *scores, cudaStream_t stream) {
  return sumsInBlocks(w) ? enqueueSum<T>(w, static_cast<const float *>(scores), chunksFor(w, w.queries), stream)
                         : enqueueSum<T>(w, static_cast<const T *>(scores), w.batch, stream);
}

} // namespace

bool servesGradWg(const AttentionWork &w) {
  const long long *s = w.dbias.strides;
  if (!servesWg(w))
    return false;
  if (!w.dbias.array.data)
    return true;
  // The gradient of scores is stored 16 bytes at a time.
  return w.dbias.array.type == w.type && (s[2] || w.queries == 1) && s[3] && w.keys % 8 == 0 &&
         (sums(w) || uintptr_t(w.dbias.array.data) % 16 == 0);
}

cudaError_t prepareAttentionGradWg(const AttentionWork &w) {
  return !few(w) ? prepareAttentionGradWgMany(w) : withVariant(w, [&](auto type, auto drops, auto scores) {
    return allowShared(gradWgmma<decltype(type), Makes::All, decltype(scores)::value, decltype(drops)::value>);
  });
}

cudaError_t enqueueAttentionGradWg(const AttentionWork &w, void *scratch, cudaStream_t stream) {
  GradMaps maps;
  if (cudaError_t code = describe(maps, w); code != cudaSuccess)
    return code;
  // Sums of rows and, behind them, gradients of scores that become a sum.
  float *rowSums = static_cast<float *>(scratch);
  void *scores = static_cast<char *>(scratch) + attentionTileSums(w.batch, w.heads, w.queries, w.keys);
  AttentionWork stored = w;
  if (sums(w) && !sumsInBlocks(w)) {
    const long long each = (long long)(w.queries) * w.keys, strides[4] = {w.heads * each, each, w.keys, 1};
    stored.dbias.array.data = scores;
    for (int d = 0; d < 4; ++d)
      stored.dbias.strides[d] = strides[d];
  }
  const cudaError_t code = few(w) ? enqueueFew(stored, maps, static_cast<float *>(scores), stream)
                                  : enqueueAttentionGradWgMany(stored, maps, rowSums, stream);
  if (code != cudaSuccess || !sums(w))
    return code;
  return w.type == ElementType::BF16 ? enqueueSum<__nv_bfloat16>(w, scores, stream)
                                     : enqueueSum<__half>(w, scores, stream);
}

long long attentionGradWgScratch(const AttentionWork &w) {
  return attentionTileWorkspace(w.batch, w.heads, w.queries, w.keys, sums(w), sumsBatches(w));
}

} // namespace shardc::cuda
