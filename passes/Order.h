// SPDX-License-Identifier: Apache-2.0
// What the passes that move collectives share: a graph's list as a vector, rebuilt and put back.
#pragma once

#include "ir/ops/OpDef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <vector>

namespace shardc {

class OpTimes;

using Order = std::vector<Op *>;

/// input, param, constant, scalars: there before the first command, wherever they stand in the list.
bool isSource(const Op &op);
/// Issues nothing, so that it may stand anywhere between its operands and its uses: sources, and views other than waits.
bool isFree(const Op &op);
/// What a view, or a view of a view ..., reads: the value of an op that is no view (a wait counts as none).
Value *rootOf(Value *value);
/// Calls `visit` for every op that reads `value` or a view of it and is not itself a view. In no order, some perhaps twice.
void forEachReader(const Value *value, llvm::function_ref<void(Op *)> visit);

Order orderOf(Graph &graph);
/// Makes `order` the graph's list; phases follow the places where ops now stand. Requires: a permutation of its ops, operands before
/// uses; only collectives, packs and free ops have moved down into a later phase.
void applyOrder(Graph &graph, const Order &order);

/// A list that grows at its end. What an op reads and is free comes just before it, if it is not there yet.
class OrderBuilder {
public:
  /// Asked for an operand's op that is neither there nor free: must add it.
  using Missing = llvm::function_ref<void(Op *)>;
  explicit OrderBuilder(size_t size) { order_.reserve(size); }
  /// Does nothing if `op` is there already.
  void add(Op *op, Missing missing);
  void add(Op *op); ///< Requires: no operand is missing.
  bool has(const Op *op) const { return there_.contains(op); }
  Order take() { return std::move(order_); }

private:
  Order order_;
  llvm::DenseSet<const Op *> there_;
};

/// Every reduction as early as its operands allow, every wait for one as late as memory and its users allow; the rules are
/// those of pass reduce-early. The rest stays as it is.
Order reductionsEarly(const Order &order, const OpTimes &times);

/// Every gather that something reads as early as memory and its operands allow, no earlier than time demands; the rules are those of pass
/// gather-prefetch, `limit` its prefetch-limit. The rest stays as it is.
Order gathersEarly(const Order &order, const OpTimes &times, uint64_t limit);
/// What a limit is where none is given: the two largest neighbours among the gathers.
uint64_t defaultPrefetchLimit(const Order &order);

} // namespace shardc
