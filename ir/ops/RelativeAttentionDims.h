// SPDX-License-Identifier: Apache-2.0
// What relative_attention and its gradient share: checks, reference scores, cost.
#pragma once

#include "ir/ops/AttentionDims.h"

namespace shardc {

/// Checks operands q, k, v, pos_key, pos_query from `q` on and the optional mask at `mask`, and the attributes. Ask
/// `check.failed()` before the dims are used.
void checkRelativeAttention(OpCheck &check, unsigned q, unsigned mask);

/// The operands of scores in double, for reference evaluation.
struct RelativeScores {
  AttentionDims dims;
  double scale;
  std::vector<double> q, k, posKey, posQuery; ///< empty: absent
  AttentionMask mask;
  /// Operands q, k, v, pos_key, pos_query from `q` on.
  RelativeScores(const Op &op, TensorArgs in, unsigned q, unsigned maskAt);
  int64_t posAt(int64_t i, int64_t j, int64_t h) const {
    return ((i - j + dims.keys - 1) * dims.heads + h) * dims.depth;
  }
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const; ///< before the mask
};

/// Of `products` times the two products of attention and its position terms.
double relativeAttentionFlops(const Op &op, unsigned q, double products);

} // namespace shardc
