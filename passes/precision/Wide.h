// SPDX-License-Identifier: Apache-2.0
// Part of set-precision: what stays f32 in a forward pass whose other values become 16-bit floats.
#pragma once

#include "ir/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc::precision {

/// Readers that take no f32 round a wide value for themselves; views, pointwise ops and norms take it as it is.
struct WideChoice {
  /// Results that are left f32: of pointwise ops, products and norms.
  llvm::DenseSet<const Value *> values;
  /// Ops that compute in f32: they take all operands as f32, and so are their results.
  llvm::DenseSet<const Op *> ops;
};

/// The rules that serve every 16-bit type: the loss and what leads to nothing else; logits of few classes; and the residual stream: sums
/// that norms read, and norms that are their terms. (A product is a 16-bit term unless product-epilogues makes the sum its own.) With
/// `products` these terms are f32, too: fp16's range is too small for what the last product of T5's feed-forward makes. `dependent`: values
/// that depend on a parameter. Requires: level imported, no dead ops, which would count as readers.
WideChoice chooseWide(const Graph &graph, const llvm::DenseSet<const Value *> &dependent, bool products);

} // namespace shardc::precision
