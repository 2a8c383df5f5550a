// SPDX-License-Identifier: Apache-2.0
// Dims in another order: dim i of the result is dim perm[i] of the operand.
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &x = check.in(0);
  Ints perm = check.ints("perm", x.rank());
  Ints sorted = perm;
  llvm::sort(sorted);
  for (int64_t i = 0; i < int64_t(sorted.size()) && !check.failed(); ++i)
    if (sorted[i] != i)
      check.fail("attribute 'perm': got " + llvm::Twine(sorted[i]) +
                 " missing, out of range or twice, wanted each of [0, " + llvm::Twine(x.rank()) +
                 ") once");
  if (check.failed())
    return check.error();
  Dims dims;
  for (int64_t from : perm)
    dims.push_back(x.dims[from]);
  return check.done({Type(x.dtype, dims)});
}

void gradient(GradContext &g) {
  const Ints &perm = g.attrs().getInts("perm");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[perm[i]] = i;
  g.setGrad(0, g.transpose(g.dOut(), inverse));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  Dims own = rowMajorStrides(in[0]->dims()), dims, strides;
  for (int64_t from : op.attrs.getInts("perm")) {
    dims.push_back(in[0]->dims()[from]);
    strides.push_back(own[from]);
  }
  return Tensors{gatherStrided(*in[0], 0, dims, strides)};
}

} // namespace

constinit const OpDef kTranspose = {.mnemonic = "transpose",
                                    .operands = kNamesX,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .evaluate = evaluate,
                                    .view = true,
                                    .layouts = kStrided};

} // namespace shardc
