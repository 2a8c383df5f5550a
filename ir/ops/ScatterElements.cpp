// SPDX-License-Identifier: Apache-2.0
// Writes (or adds, multiplies, ...) one element per index along one axis into a copy of the data.
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include "ir/ops/ScatterGradient.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.sameDType(0, 2);
  checkElementIndices(check);
  check.hasDims(2, check.in(1).dims);
  checkReduction(check);
  return check.done({check.in(0)});
}

void gradient(GradContext &g) {
  const Attr &axis = *g.attrs().find("axis");
  scatterGradient(
      g,
      [&](Value *x) {
        return g.make(kGatherElements, {x, g.in(1)}, {{"axis", axis}});
      },
      [&](Value *x, Value *updates, llvm::StringRef reduction) {
        return g.make(kScatterElements, {x, g.in(1), updates},
                      {{"axis", axis}, {"reduction", reduction.str()}});
      });
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  int64_t axis = normalAxis(op.attrs.getInt("axis"), in[0]->rank());
  Tensor y = copyOf(*in[0]);
  int64_t bad = scatterElements(y.mutableData<char>(), y.dims(),
                                indicesOf(*in[1]),
                                in[1]->dims(), in[2]->bytes(), axis,
                                *parseScatter(op.attrs.getString("reduction")), y.dtype());
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(y.dims()[axis]) + " places");
  return Tensors{y};
}

constexpr const char *kOperands[] = {"data", "indices", "updates"};

} // namespace

constinit const OpDef kScatterElements = {.mnemonic = "scatter_elements",
                                          .operands = kOperands,
                                          .infer = infer,
                                          .gradient = gradient,
                                          .evaluate = evaluate,
                                          .inPlace = kInPlace0};

} // namespace shardc
