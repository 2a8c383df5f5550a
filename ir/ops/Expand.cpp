// SPDX-License-Identifier: Apache-2.0
// Broadcasts to `dims`, by numpy's rule: dims of 1 and leading dims that are missing repeat.
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &x = check.in(0);
  Ints dims = check.ints("dims");
  std::optional<Dims> both = broadcastDims(x.dims, dims);
  if (!both || *both != dims)
    check.fail("dims do not broadcast: got " + formatDims(x.dims) + " -> " + formatDims(dims) +
               ", wanted equal ones, or 1 on the left");
  return check.done({Type(x.dtype, dims)});
}

void gradient(GradContext &g) { g.setGrad(0, g.dOut()); } // summed to fit

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Ints &dims = op.attrs.getInts("dims");
  return Tensors{gatherStrided(*in[0], 0, dims, broadcastStrides(in[0]->dims(), dims))};
}

} // namespace

constinit const OpDef kExpand = {.mnemonic = "expand",
                                 .operands = kNamesX,
                                 .infer = infer,
                                 .gradient = gradient,
                                 .evaluate = evaluate,
                                 .view = true,
                                 .layouts = kStrided};

} // namespace shardc
