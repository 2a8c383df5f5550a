// SPDX-License-Identifier: Apache-2.0
// Lays values end to end along `axis`.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  if (op.numOperands() == 0)
    check.fail("number of operands: got 0, wanted 1 or more");
  if (check.failed())
    return check.error();
  int64_t axis = check.axis("axis", check.in(0).rank());
  if (check.failed())
    return check.error();
  Type y = check.in(0);
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
  int64_t rank = g.out()->type().rank(), axis = normalAxis(g.attrs().getInt("axis"), rank);
  Ints starts(rank, 0);
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
  concat(y.mutableData<char>(), type.dims, normalAxis(op.attrs.getInt("axis"), type.rank()), pieces,
         byteSize(type.dtype));
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

} // namespace shardc
