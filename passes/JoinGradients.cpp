// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

constexpr unsigned kDq = 0, kDk = 1, kDv = 2;

/// The gradient of attention whose dq, dk, dv (or dk, dv), heads side by side, are the operands of `concat`,
/// in this order.
struct Match {
  Op *gradient = nullptr;
  unsigned first = 0; ///< kDq or kDk
};

std::optional<Match> match(const Op &concat) {
  if (!concat.is(kConcat) || concat.numOperands() < 2 || concat.numOperands() > 3)
    return std::nullopt;
  const Type &type = concat.result()->type();
  int64_t axis = concat.attrs.getInt("axis");
  Match found;
  found.first = concat.numOperands() == 3 ? kDq : kDk;
  for (unsigned i = 0; i < concat.numOperands(); ++i) {
    const Value *v = concat.operand(i);
    while (v->op()->is(kReshape))
      v = v->op()->operand(0);
    const Dims &dims = v->type().dims;
    bool fits = (v->op()->is(kAttentionGrad) || v->op()->is(kRelativeAttentionGrad)) &&
                v->index() == found.first + i && !v->op()->attrs.has("joined") && type.rank() == 3 &&
                (axis == 2 || axis == -1) &&
                concat.operand(i)->type().dims == Dims{dims[0], dims[1], dims[2] * dims[3]} &&
                dims == v->op()->result(kDv)->type().dims && (!found.gradient || found.gradient == v->op());
    if (!fits)
      return std::nullopt;
    found.gradient = v->op();
  }
  return found;
}

/// attention_grad that writes one array; others see slices of it.
void rewrite(Op &concat, const Match &match) {
  Graph &graph = concat.graph();
  Op &old = *match.gradient;
  Builder b(graph, &old);
  b.stampLike(old);
  Attrs attrs = old.attrs;
  attrs.set("joined", std::string(match.first == kDq ? "qkv" : "kv"));
  Op *made = b.make(old.def(), old.operands(), std::move(attrs))->op();
  Value *joined = made->result(match.first);
  graph.rename(joined, (old.mnemonic() + (match.first == kDq ? ".dqkv" : ".dkv")).str());
  for (unsigned i = 0; i < match.first; ++i)
    graph.replaceAllUses(old.result(i), made->result(i));
  for (unsigned i = kDv + 1; i < old.numResults(); ++i) {
    Value *same = made->result(match.first + i - kDv);
    graph.replaceAllUses(old.result(i), same);
    graph.rename(same, (old.mnemonic() + "." + old.def().results[i]).str());
  }
  const Dims dims = old.result(kDv)->type().dims;
  Dims part = joined->type().dims;
  part[2] = 1;
  Ints starts(5, 0);
  for (unsigned i = match.first; i <= kDv; ++i, ++starts[2])
    graph.replaceAllUses(old.result(i), b.reshape(b.slice(joined, starts, part), dims));
  graph.replaceAllUses(concat.result(), b.reshape(joined, concat.result()->type().dims));
  graph.erase(&concat);
  graph.erase(&old);
}

} // namespace

llvm::Error joinGradients(Graph &graph, const CompileOptions &) {
  for (auto it = graph.ops().begin(); it != graph.ops().end();) {
    Op &op = *it++;
    if (std::optional<Match> found = match(op))
      rewrite(op, *found);
  }
  return llvm::Error::success();
}

} // namespace shardc
