// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of 16-bit heads of 64 elements, with more than 128 queries or keys, by warpgroups: a kernel
// for dq and one for dk and dv, each of which computes the probabilities again.
#include "runtime/cuda/AttentionWgmmaGradient.cuh"

namespace shardc::cuda {
namespace {

/// f(an element, are probabilities dropped?, what becomes of the gradient of scores)
template <typename F> cudaError_t withVariant(const AttentionWork &w, F f) {
  return withDrops(w, [&](auto type, auto drops) {
    return w.dbias.array.data ? f(type, drops, std::integral_constant<Scores, Scores::Stored>())
                              : f(type, drops, std::integral_constant<Scores, Scores::Dropped>());
  });
}

} // namespace

cudaError_t prepareAttentionGradWgMany(const AttentionWork &w) {
  return withVariant(w, [&](auto type, auto drops, auto scores) {
    using T = decltype(type);
    constexpr bool kDrops = decltype(drops)::value;
    const cudaError_t code = allowShared(gradWgmma<T, Makes::Queries, decltype(scores)::value, kDrops>);
    return code == cudaSuccess ? allowShared(gradWgmma<T, Makes::Keys, Scores::Dropped, kDrops>) : code;
  });
}

cudaError_t enqueueAttentionGradWgMany(const AttentionWork &w, const GradMaps &maps, float *sums, cudaStream_t stream) {
  return withVariant(w, [&](auto type, auto drops, auto scores) {
    using T = decltype(type);
    constexpr bool kDrops = decltype(drops)::value;
    auto gridOf = [&](int rows) { return dim3(w.heads * chunksFor(w, rows), blocksFor(rows, kWgRows)); };
    const cudaError_t code = enqueue(gradWgmma<T, Makes::Queries, decltype(scores)::value, kDrops>, gridOf(w.queries),
                                     kWgThreads, gradShared(w), stream, w, maps, chunksFor(w, w.queries), sums);
    return code != cudaSuccess ? code
                               : enqueue(gradWgmma<T, Makes::Keys, Scores::Dropped, kDrops>, gridOf(w.keys), kWgThreads,
                                         gradShared(w), stream, w, maps, chunksFor(w, w.keys), sums);
  });
}

} // namespace shardc::cuda
