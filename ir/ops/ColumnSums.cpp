// SPDX-License-Identifier: Apache-2.0
// column_sums(x0, x1 ...){dtypes}: result i is the sum of xi over dim 0, rounded to the i-th of `dtypes` ("bf16,f32").
// The second pass of what fused_rows sums over rows: many at once, for each is small.
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  llvm::SmallVector<llvm::StringRef> names;
  check.text("dtypes").split(names, ',');
  if (!check.failed() && names.size() != op.numOperands())
    check.fail("attribute 'dtypes': got " + llvm::Twine(names.size()) + " types, wanted one for each of " +
               llvm::Twine(op.numOperands()) + " operands");
  Types types;
  for (unsigned i = 0; i < op.numOperands() && !check.failed(); ++i) {
    const Type &x = check.in(i);
    std::optional<DType> dtype = parseDType(names[i]);
    if (!dtype || !isFloat(*dtype))
      check.fail("attribute 'dtypes': got '" + names[i] + "', wanted a float type");
    else if (!isFloat(x.dtype) || isHalf(x.dtype) || x.rank() < 1)
      check.fail("operand " + llvm::Twine(i) + ": got " + toString(x.dtype) + formatDims(x.dims) +
                 ", wanted f32 or f64 of rank 1 or more");
    else
      types.push_back(Type(*dtype, llvm::ArrayRef(x.dims).drop_front()));
  }
  return check.done(types);
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  Tensors results;
  for (unsigned r = 0; r < op.numResults(); ++r) {
    const Type &type = op.result(r)->type();
    std::vector<double> from = toDoubles(*in[r]), to(type.numElements());
    for (size_t i = 0; i < from.size(); ++i)
      to[i % to.size()] += from[i];
    results.push_back(fromDoubles(type.dtype, type.dims, to));
  }
  return results;
}

constexpr const char *kOperands[] = {"x*"};

} // namespace

constinit const OpDef kColumnSums = {.mnemonic = "column_sums",
                                     .operands = kOperands,
                                     .infer = infer,
                                     .notDifferentiable = "it is made after the gradients",
                                     .evaluate = evaluate};

} // namespace shardc
