// SPDX-License-Identifier: Apache-2.0
// Surrounds a value with `before` and `after` elements of `value` in each dim.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  Type y = check.in(0);
  Ints before = check.ints("before", y.rank()), after = check.ints("after", y.rank());
  check.number("value");
  if (check.failed())
    return check.error();
  constexpr int64_t kMost = int64_t(1) << 40; // keeps the sums from overflowing
  for (int64_t i = 0; i < y.rank(); ++i) {
    if (before[i] < 0 || after[i] < 0 || before[i] > kMost || after[i] > kMost)
      check.fail("dim " + llvm::Twine(i) + ": got padding " + llvm::Twine(before[i]) + " and " +
                 llvm::Twine(after[i]) + ", wanted ones in [0, 2^40]");
    else
      y.dims[i] += before[i] + after[i];
  }
  return check.done({y});
}

void gradient(GradContext &g) {
  g.setGrad(0, g.slice(g.dOut(), g.attrs().getInts("before"), g.in(0)->type().dims));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  Tensor fill = Tensor::splat(type.dtype, {}, numberOf(op, "value"));
  Tensor y(type.dtype, type.dims);
  pad(y.mutableData<char>(), type.dims, in[0]->bytes(), in[0]->dims(),
      rowMajorStrides(in[0]->dims()), op.attrs.getInts("before"), fill.bytes(),
      byteSize(type.dtype));
  return Tensors{y};
}

} // namespace

constinit const OpDef kPad = {.mnemonic = "pad",
                              .operands = kNamesX,
                              .infer = infer,
                              .gradient = gradient,
                              .evaluate = evaluate,
                              .layouts = kStrided};

} // namespace shardc
