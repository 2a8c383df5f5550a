// SPDX-License-Identifier: Apache-2.0
// pack(into?, x...) {offsets, elements}: a flat array that holds x_i, flattened, from element offsets[i] on; elsewhere what `into`
// holds, or zeros. How gradients become a bucket: emission lets each x_i be born in its place, so that nothing is copied.
// It stands for memory of its own (effect): two buckets of the same gradient are still two.
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  int64_t elements = check.integer("elements"), end = 0;
  Ints offsets = check.ints("offsets");
  if (!check.failed() && offsets.size() + 1 != op.numOperands())
    check.fail("attribute 'offsets': got " + llvm::Twine(offsets.size()) + " numbers, wanted one for each of " +
               llvm::Twine(op.numOperands() - 1) + " operands");
  if (!check.failed() && offsets.empty())
    check.fail("operands: got none, wanted at least one array");
  if (check.failed())
    return check.error();
  for (unsigned i = 0; i < offsets.size(); ++i) {
    check.sameDType(1, 1 + i);
    if (offsets[i] < end)
      check.fail("attribute 'offsets': got " + llvm::Twine(offsets[i]) + ", wanted at least " + llvm::Twine(end) +
                 ", where the operand before ends");
    end = offsets[i] + check.in(1 + i).numElements();
  }
  if (elements < end)
    check.fail("attribute 'elements': got " + llvm::Twine(elements) + ", wanted at least " + llvm::Twine(end));
  Type type(check.in(1).dtype, {elements});
  if (check.has(0)) {
    check.sameDType(1, 0);
    check.hasDims(0, type.dims);
  }
  return check.done({type});
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  std::vector<double> flat = in[0] ? toDoubles(*in[0]) : std::vector<double>(type.numElements());
  for (auto [offset, x] : llvm::zip(op.attrs.getInts("offsets"), in.drop_front()))
    llvm::copy(toDoubles(*x), flat.begin() + offset);
  return Tensors{fromDoubles(type.dtype, type.dims, flat)};
}

constexpr const char *kOperands[] = {"into?", "x*"};
constexpr InPlace kInto[] = {{0, 0}};

} // namespace

constinit const OpDef kPack = {.mnemonic = "pack",
                               .operands = kOperands,
                               .infer = infer,
                               .notDifferentiable = "it is made after the gradients",
                               .evaluate = evaluate,
                               .cost = [](const Op &) { return Cost(); },
                               .effect = true,
                               .layouts = kStrided,
                               .inPlace = kInto,
                               .inPlaceRequired = true};

} // namespace shardc
