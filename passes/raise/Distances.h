// SPDX-License-Identifier: Apache-2.0
// DeBERTa's terms of scores that depend on how far query and key are apart.
#pragma once

#include "ir/graph/Builder.h"
#include <optional>

namespace shardc::raising {

/// scale * content[i] positions[rows[i - j + Sk - 1]], where content are queries, or keys with j for i.
struct DistanceTerm {
  Value *content;   ///< [B H, S, D] or [B, H, S, D], as the product has it
  Value *positions; ///< [1, H, P, D] or [H, P, D]
  bool ofKeys = false;
  double scale = 1;
  Ints rows; ///< of positions, Sq + Sk - 1
};

/// `term` is such a term of scores [B, H, Sq, Sk]: gather_elements from the products of all queries (or keys) with all positions by constant
/// indices that depend on i - j alone.
std::optional<DistanceTerm> matchDistances(Builder &build, Value *term, llvm::ArrayRef<int64_t> scores);

/// The rows of a term's positions, [Sq + Sk - 1, H, D]. Positions that no query meets are cut before they are computed.
Value *distanceRows(Builder &build, const DistanceTerm &term);

} // namespace shardc::raising
