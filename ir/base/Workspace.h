// SPDX-License-Identifier: Apache-2.0
// Scratch memory of kernels on devices, as the compiler reserves it and kernels may use it. Bytes.
#pragma once

#include <cstdint>

namespace shardc {

/// Of a product, whatever its size. With 32 MiB, what its library would like, steps of t5-large (batch 16, 64) and
/// deberta-v2-xlarge (40) on an H200 are as fast to 1 %.
constexpr int64_t kProductWorkspace = 2 << 20;

/// Of a sum of squares: a double for each block of so many elements. They decide the order of the sum.
constexpr int64_t kSquaresPerBlock = 1 << 13;
constexpr int64_t squaresWorkspace(int64_t elements) {
  return 8 * ((elements + kSquaresPerBlock - 1) / kSquaresPerBlock);
}

/// Of a loss: what each row adds to the sum and to the count of hits.
constexpr int64_t lossWorkspace(int64_t rows) { return 16 * rows; }

/// Attention by blocks that stay with a head and a tile of so many rows, about `blocks` of them: into how many chunks the
/// batches are cut.
constexpr int64_t kAttentionRows = 128, kAttentionBlocks = 132;
constexpr int64_t attentionChunks(int64_t batch, int64_t heads, int64_t rows, int64_t blocks) {
  const int64_t tiles = heads * ((rows + kAttentionRows - 1) / kAttentionRows), most = tiles ? blocks / tiles : 1;
  const int64_t chunks = most < 1 ? 1 : most < batch ? most : batch;
  const int64_t each = chunks ? (batch + chunks - 1) / chunks : 1;
  return (batch + each - 1) / each; // none is empty
}
/// Of the gradient of attention: a sum for each row of scores.
constexpr int64_t attentionSumsWorkspace(int64_t batch, int64_t heads, int64_t queries, int64_t sumBytes) {
  return (batch * heads * queries * sumBytes + 255) / 256 * 256;
}
/// With heads of 64 16-bit elements: those where a head is more than a tile, and behind them, if the gradient of the bias
/// is a sum of gradients of scores, all of these, or of one tile the sum over each chunk of the batches if it is over all.
constexpr bool attentionOneTile(int64_t queries, int64_t keys) {
  return queries <= kAttentionRows && keys <= kAttentionRows;
}
constexpr int64_t attentionTileSums(int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  return attentionOneTile(queries, keys) ? 0 : attentionSumsWorkspace(batch, heads, queries, 4);
}
constexpr int64_t attentionTileWorkspace(int64_t batch, int64_t heads, int64_t queries, int64_t keys, bool biasSum,
                                         bool overBatches) {
  const int64_t scores = heads * queries * keys;
  if (biasSum && overBatches && attentionOneTile(queries, keys))
    return 4 * attentionChunks(batch, heads, queries, kAttentionBlocks) * scores;
  return attentionTileSums(batch, heads, queries, keys) + (biasSum ? 2 * batch * scores : 0);
}

/// How the gradients of relative_attention's positions are summed over the batch, with heads of 64 16-bit elements: by parts, in blocks of
/// a head, a part and a diagonal of tiles of kAttentionRows rows. Depends on sizes alone, so that bits do too.
struct RelativeParts {
  int diagonals, each, parts; ///< each: batches of a part
};
constexpr RelativeParts relativeParts(int batch, int heads, int queries, int keys) {
  constexpr int kRows = kAttentionRows;
  const int diagonals = (queries + kRows - 1) / kRows + (keys + kRows - 1) / kRows - 1;
  const int wanted = int(kAttentionBlocks) / (heads * diagonals);
  const int each = wanted < 1 ? batch : (batch + wanted - 1) / wanted;
  return {diagonals, each, (batch + each - 1) / each};
}
/// Gradients of scores, rows padded to 8; behind them a sum of each block for both kinds of positions.
constexpr int64_t relativeScoresWorkspace(int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  return attentionSumsWorkspace(batch, heads, queries, (keys + 7) / 8 * 8 * 2);
}
constexpr int64_t kRelativeSumBytes = 2 * kAttentionRows * 64 * 4; ///< distances of a diagonal, elements of a head, f32
constexpr int64_t relativePositionsWorkspace(int batch, int heads, int queries, int keys) {
  const RelativeParts p = relativeParts(batch, heads, queries, keys);
  return int64_t(p.parts) * p.diagonals * 2 * heads * kRelativeSumBytes;
}

/// Of the gradient of a table's rows: the ids, sorted, and sums of runs that reach over `kIdsPerPiece` sorted ids, in up to
/// `sumBytes` a column.
constexpr int64_t kIdsPerPiece = 16;
constexpr int64_t rowSumsWorkspace(int64_t ids, int64_t width, int64_t sumBytes) {
  const int64_t pieces = (ids + kIdsPerPiece - 1) / kIdsPerPiece;
  return 2 * pieces * width * sumBytes + 28 * ids + (1 << 20);
}

} // namespace shardc
