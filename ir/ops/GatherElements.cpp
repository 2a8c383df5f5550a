// SPDX-License-Identifier: Apache-2.0
// Picks one element per index along one axis, and its gradient, which adds elements up by index.
// Dims of the indices other than the axis may be smaller than the data's.
#include "ir/base/Movement.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkElementIndices(check);
  return check.done({Type(check.in(0).dtype, check.in(1).dims)});
}

void gradient(GradContext &g) {
  const Dims &data = g.in(0)->type().dims, &index = g.in(1)->type().dims;
  int64_t axis = normalAxis(g.attrs().getInt("axis"), data.size());
  Value *dx =
      g.make(kGatherElementsGrad, {g.dOut(), g.in(1)}, {{"axis", axis}, {"size", data[axis]}});
  Ints before(data.size(), 0), after(data.size(), 0);
  for (size_t i = 0; i < data.size(); ++i)
    after[i] = int64_t(i) == axis ? 0 : data[i] - index[i];
  if (llvm::any_of(after, [](int64_t n) { return n; }))
    dx = g.make(kPad, {dx}, {{"before", before}, {"after", after}, {"value", 0.0}});
  g.setGrad(0, dx);
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  int64_t axis = normalAxis(op.attrs.getInt("axis"), type.rank());
  Tensor y(type.dtype, type.dims);
  int64_t bad = gatherElements(y.mutableData<char>(), in[0]->bytes(), in[0]->dims(),
                               indicesOf(*in[1]),
                               in[1]->dims(), axis, byteSize(type.dtype));
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(in[0]->dims()[axis]) + " places");
  return Tensors{y};
}

llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  Type dx = check.in(0);
  check.isFloat(0);
  check.isIndex(1);
  check.hasDims(1, dx.dims);
  int64_t axis = check.axis("axis", dx.rank()), size = check.count("size");
  if (check.failed())
    return check.error();
  dx.dims[axis] = size;
  return check.done({dx});
}

llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  int64_t axis = normalAxis(op.attrs.getInt("axis"), type.rank());
  Tensor dx(type.dtype, type.dims);
  int64_t bad = scatterElements(dx.mutableData<char>(), type.dims,
                                indicesOf(*in[1]),
                                in[1]->dims(), in[0]->bytes(), axis, Scatter::Add, type.dtype);
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(type.dims[axis]) + " places");
  return Tensors{dx};
}

constexpr const char *kOperands[] = {"data", "indices"};
constexpr const char *kGradOperands[] = {"dy", "indices"};
constexpr const char *kGradResults[] = {"dx"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"axis", "axis", 0}};

} // namespace

constinit const OpDef kGatherElements = {.mnemonic = "gather_elements",
                                         .operands = kOperands,
                                         .onnx = {"GatherElements", kAttrs},
                                         .infer = infer,
                                         .gradient = gradient,
                                         .evaluate = evaluate,
                                         .layouts = kStrided};

constinit const OpDef kGatherElementsGrad = {.mnemonic = "gather_elements_grad",
                                             .operands = kGradOperands,
                                             .results = kGradResults,
                                             .infer = inferGrad,
                                             .notDifferentiable = kIsGradient,
                                             .evaluate = evaluateGrad,
                                             .layouts = kStrided};

} // namespace shardc
