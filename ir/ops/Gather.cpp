// SPDX-License-Identifier: Apache-2.0
// Picks slices along one axis by index, and its gradient, which adds slices up by index.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &data = check.in(0), &indices = check.in(1);
  check.isIndex(1);
  int64_t axis = check.axis("axis", data.rank());
  if (check.failed())
    return check.error();
  Dims dims(data.dims.begin(), data.dims.begin() + axis);
  dims.append(indices.dims.begin(), indices.dims.end());
  dims.append(data.dims.begin() + axis + 1, data.dims.end());
  return check.done({Type(data.dtype, dims)});
}

void gradient(GradContext &g) {
  const Dims &dims = g.in(0)->type().dims;
  int64_t axis = normalAxis(g.attrs().getInt("axis"), dims.size());
  g.setGrad(0, g.make(kGatherGrad, {g.dOut(), g.in(1)}, {{"axis", axis}, {"size", dims[axis]}}));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  AxisView view(in[0]->dims(), normalAxis(op.attrs.getInt("axis"), in[0]->rank()));
  Tensor y(type.dtype, type.dims);
  int64_t bad =
      gather(y.mutableData<char>(), in[0]->bytes(), view,
             indicesOf(*in[1]), byteSize(type.dtype));
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(view.size) + " places");
  return Tensors{y};
}

// dy has the indices' dims in the place of the axis.
llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  const Type &dy = check.in(0), &indices = check.in(1);
  check.isFloat(0);
  check.isIndex(1);
  int64_t size = check.count("size"), rank = dy.rank() - indices.rank() + 1;
  if (rank < 1)
    check.fail("operand dy: got dims " + formatDims(dy.dims) + ", wanted at least rank " +
               llvm::Twine(indices.rank()));
  int64_t axis = check.failed() ? 0 : check.axis("axis", rank);
  if (check.failed())
    return check.error();
  if (llvm::ArrayRef(dy.dims).slice(axis, indices.rank()) != llvm::ArrayRef(indices.dims))
    check.fail("operand dy: got dims " + formatDims(dy.dims) + ", wanted the indices' " +
               formatDims(indices.dims) + " from dim " + llvm::Twine(axis) + " on");
  Dims dims(dy.dims.begin(), dy.dims.begin() + axis);
  dims.push_back(size);
  dims.append(dy.dims.begin() + axis + indices.rank(), dy.dims.end());
  return check.done({Type(dy.dtype, dims)});
}

llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  AxisView view(type.dims, normalAxis(op.attrs.getInt("axis"), type.rank()));
  Tensor dx(type.dtype, type.dims);
  int64_t bad = gatherGrad(dx.mutableData<char>(), in[0]->bytes(), view,
                           indicesOf(*in[1]), type.dtype);
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(view.size) + " places");
  return Tensors{dx};
}

constexpr const char *kOperands[] = {"data", "indices"};
constexpr const char *kGradOperands[] = {"dy", "indices"};
constexpr const char *kGradResults[] = {"dx"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"axis", "axis", 0}};

} // namespace

constinit const OpDef kGather = {.mnemonic = "gather",
                                 .operands = kOperands,
                                 .onnx = {"Gather", kAttrs},
                                 .infer = infer,
                                 .gradient = gradient,
                                 .evaluate = evaluate};

constinit const OpDef kGatherGrad = {.mnemonic = "gather_grad",
                                     .operands = kGradOperands,
                                     .results = kGradResults,
                                     .infer = inferGrad,
                                     .notDifferentiable = kIsGradient,
                                     .evaluate = evaluateGrad};

} // namespace shardc
