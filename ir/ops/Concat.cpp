// SPDX-License-Identifier: Apache-2.0
// concat: values laid end to end along `axis`.
// join: arrays that lie one behind another in memory, seen as one along dim 0: parameters that are neighbours in their
// bucket. No bytes move, so who makes a join must know where its operands lie.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

/// Requires: `infer` has passed.
int64_t axisOf(const Op &op) { return op.is(kJoin) ? 0 : normalAxis(op.attrs.getInt("axis"), op.result()->type().rank()); }

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  if (op.numOperands() == 0)
    check.fail("number of operands: got 0, wanted 1 or more");
  if (check.failed())
    return check.error();
  Type y = check.in(0);
  if (y.rank() == 0)
    check.fail("operand x0: got a scalar, wanted rank 1 or more");
  int64_t axis = op.is(kJoin) ? 0 : check.axis("axis", y.rank());
  if (check.failed())
    return check.error();
  for (unsigned i = 1; i < op.numOperands(); ++i) {
    check.sameDType(0, i);
    Dims wanted = check.in(0).dims;
    if (check.in(i).rank() == y.rank())
      wanted[axis] = check.in(i).dims[axis];
    check.hasDims(i, wanted);
    if (check.failed())
      return check.error();
    y.dims[axis] += check.in(i).dims[axis];
  }
  return check.done({y});
}

void gradient(GradContext &g) {
  const int64_t axis = axisOf(g.op());
  Ints starts(g.out()->type().rank(), 0);
  for (unsigned i = 0; i < g.op().numOperands(); ++i) {
    const Dims &dims = g.in(i)->type().dims;
    if (g.needs(i))
      g.setGrad(i, g.slice(g.dOut(), starts, dims));
    starts[axis] += dims[axis];
  }
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  llvm::SmallVector<Dims> strides;
  for (const Tensor *piece : in)
    strides.push_back(rowMajorStrides(piece->dims()));
  llvm::SmallVector<ConcatPiece> pieces;
  for (size_t i = 0; i < in.size(); ++i)
    pieces.push_back({in[i]->bytes(), in[i]->dims(), strides[i]});
  Tensor y(type.dtype, type.dims);
  concat(y.mutableData<char>(), type.dims, axisOf(op), pieces, byteSize(type.dtype));
  return Tensors{y};
}

constexpr const char *kOperands[] = {"x*"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"axis", "axis", 0}};

} // namespace

constinit const OpDef kConcat = {.mnemonic = "concat",
                                 .operands = kOperands,
                                 .onnx = {"Concat", kAttrs},
                                 .infer = infer,
                                 .gradient = gradient,
                                 .evaluate = evaluate,
                                 .layouts = kStrided};

constinit const OpDef kJoin = {.mnemonic = "join",
                               .operands = kOperands,
                               .infer = infer,
                               .gradient = gradient,
                               .evaluate = evaluate,
                               .view = true};

} // namespace shardc
