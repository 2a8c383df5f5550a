// SPDX-License-Identifier: Apache-2.0
// Other dims for the same elements in row-major order. The dims are all given: -1 and 0 of ONNX are
// resolved by the importer.
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  Ints dims = check.ints("dims");
  std::optional<int64_t> count = checkedNumElements(dims);
  if (!count || *count != check.in(0).numElements())
    check.fail("number of elements: got " + formatDims(check.in(0).dims) + " -> " +
               formatDims(dims) + ", wanted an equal number");
  return check.done({Type(check.in(0).dtype, dims)});
}

void gradient(GradContext &g) { g.setGrad(0, g.reshape(g.dOut(), g.in(0)->type().dims)); }

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  return Tensors{in[0]->reshaped(op.attrs.getInts("dims"))};
}

} // namespace

constinit const OpDef kReshape = {.mnemonic = "reshape",
                                  .operands = kNamesX,
                                  .infer = infer,
                                  .gradient = gradient,
                                  .evaluate = evaluate,
                                  .view = true,
                                  .layouts = kStrided};

} // namespace shardc
