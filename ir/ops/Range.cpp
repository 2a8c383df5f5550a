// SPDX-License-Identifier: Apache-2.0
// start, start + delta, ... before limit. All three are constants, so it always folds: no kernel.
#include "ir/base/Movement.h"
#include "ir/graph/Fold.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  double number[3] = {};
  for (unsigned i = 0; i < 3; ++i) {
    check.sameDType(0, i);
    const Tensor *tensor = constantOf(op.operand(i));
    if (!tensor || tensor->numElements() != 1)
      check.fail(llvm::Twine("operand ") + op.def().operands[i] + ": got " + toString(check.in(i)) +
                 (tensor ? "" : " that is not constant") + ", wanted one constant number");
    else
      number[i] = tensor->asDouble(0);
  }
  if (check.failed())
    return check.error();
  double count = std::ceil((number[1] - number[0]) / number[2]);
  if (number[2] == 0 || !(count <= double(kMaxRange)))
    check.fail("range: got step " + llvm::Twine(std::to_string(number[2])) + " from " +
               llvm::Twine(std::to_string(number[0])) + " to " +
               llvm::Twine(std::to_string(number[1])) + ", wanted at most " + llvm::Twine(kMaxRange) + " elements");
  if (check.failed())
    return check.error();
  return check.done({Type(check.in(0).dtype, {std::max<int64_t>(0, int64_t(count))})});
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  Tensor y(type.dtype, type.dims);
  range(y.mutableData<char>(), type.dims[0], in[0]->asDouble(0), in[2]->asDouble(0), type.dtype);
  return Tensors{y};
}

constexpr const char *kOperands[] = {"start", "limit", "delta"};

} // namespace

constinit const OpDef kRange = {.mnemonic = "range",
                                .operands = kOperands,
                                .infer = infer,
                                .notDifferentiable = "its operands decide the shape of its result",
                                .evaluate = evaluate};

} // namespace shardc
