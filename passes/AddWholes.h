// SPDX-License-Identifier: Apache-2.0
// Sums of parts as sums of wholes: where weights that are neighbours are multiplied at once, and some of them a second time, each has a sum of
// two slices as its gradient; all of these are one sum, which a product can do in place.
#pragma once

#include "ir/graph/Graph.h"
#include <optional>

namespace shardc {

/// Which rows (of dim 0) a slice of whole rows takes; nullopt for any other op.
struct Rows {
  int64_t begin, end;
};
std::optional<Rows> rowsOf(const Op &slice);

/// add(slice(a), slice(b)) for each slice that takes `b` apart, in the order of rows of `a` => slices of add(rows of a, b).
void addWholes(Graph &graph);

} // namespace shardc
