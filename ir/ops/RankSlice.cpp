// SPDX-License-Identifier: Apache-2.0
// rank_slice(x: T[n]) {ranks} -> T[n / ranks]: the slice of a flat array that this rank owns. A view; the only place where a rank
// enters a plan.
#include "ir/base/Error.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  int64_t ranks = check.integer("ranks");
  if (check.failed())
    return check.error();
  const Type &x = check.in(0);
  if (ranks < 1 || x.rank() != 1 || x.dim(0) % ranks)
    check.fail("operand 0: got dims " + formatDims(x.dims) + ", wanted a flat array of a multiple of " +
               llvm::Twine(ranks) + " elements");
  if (check.failed())
    return check.error();
  return check.done({Type(x.dtype, {x.dim(0) / ranks})});
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  if (op.attrs.getInt("ranks") != 1)
    return userError("rank_slice: depends on the rank");
  return Tensors{*in[0]};
}

constexpr const char *kOperands[] = {"x"};

} // namespace

constinit const OpDef kRankSlice = {.mnemonic = "rank_slice",
                                    .operands = kOperands,
                                    .infer = infer,
                                    .notDifferentiable = "it is made after the gradients",
                                    .evaluate = evaluate,
                                    .cost = [](const Op &) { return Cost(); },
                                    .view = true,
                                    .layouts = kStrided};

} // namespace shardc
