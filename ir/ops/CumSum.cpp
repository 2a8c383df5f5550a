// SPDX-License-Identifier: Apache-2.0
// Running sums along `axis`; `exclusive` leaves the element itself out, `reverse` runs from the
// end.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  if (check.in(0).dtype == DType::Bool)
    check.fail("operand x: got bool, wanted a number type");
  check.axis("axis", check.in(0).rank());
  check.flag("exclusive");
  check.flag("reverse");
  return check.done({check.in(0)});
}

// Runs the other way.
void gradient(GradContext &g) {
  Attrs attrs = g.attrs();
  attrs.set("reverse", 1 - attrs.getInt("reverse", 0));
  g.setGrad(0, g.make(kCumSum, {g.dOut()}, attrs));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  Tensor y(in[0]->dtype(), in[0]->dims());
  cumSum(y.mutableData<char>(), in[0]->bytes(),
         AxisView(y.dims(), normalAxis(op.attrs.getInt("axis"), y.rank())),
         op.attrs.getInt("exclusive", 0), op.attrs.getInt("reverse", 0), y.dtype());
  return Tensors{y};
}

} // namespace

constinit const OpDef kCumSum = {.mnemonic = "cum_sum",
                                 .operands = kNamesX,
                                 .infer = infer,
                                 .gradient = gradient,
                                 .evaluate = evaluate};

} // namespace shardc
