// SPDX-License-Identifier: Apache-2.0
// Rows of a table by id (negative ids count from the end), and its gradient, which adds rows up by
// id, in the order of the ids: the same sum in every run. wide = 1 leaves the sums of 16-bit rows unrounded, f32.
// Row `padding`, where there is one, gets no gradient (PyTorch's padding_idx).
#include "ir/base/Movement.h"
#include "ir/base/Workspace.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  check.hasRank(0, 2);
  check.isIndex(1);
  check.integer("padding", 0);
  if (check.failed())
    return check.error();
  Dims dims = check.in(1).dims;
  dims.push_back(check.in(0).dims[1]);
  return check.done({Type(check.in(0).dtype, dims)});
}

void gradient(GradContext &g) {
  Value *dy = g.dOut(), *ids = g.in(1);
  if (g.attrs().has("padding")) {
    Value *padded = g.make(kEqual, {ids, g.scalar(ids->type().dtype, double(g.attrs().getInt("padding")))});
    Dims dims = ids->type().dims;
    dims.push_back(1);
    dy = g.where(g.reshape(padded, dims), g.scalar(dy->type().dtype, 0), dy);
  }
  g.setGrad(0, g.make(kEmbeddingGrad, {dy, ids}, {{"rows", g.in(0)->type().dims[0]}}));
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  Tensor y(type.dtype, type.dims);
  int64_t bad =
      gather(y.mutableData<char>(), in[0]->bytes(), AxisView(in[0]->dims(), 0),
             indicesOf(*in[1]), byteSize(type.dtype));
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(in[0]->dims()[0]) + " rows");
  return Tensors{y};
}

// acc, where present, is added to in place.
llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  const Type &dy = check.in(0), &ids = check.in(1);
  check.isFloat(0);
  check.isIndex(1);
  int64_t rows = check.count("rows");
  check.hasRank(0, ids.rank() + 1);
  if (check.failed())
    return check.error();
  Dims dims = ids.dims;
  dims.push_back(dy.dim(-1));
  check.hasDims(0, dims);
  Dims table{rows, dy.dim(-1)};
  DType dtype = checkSumType(check, 0, 2, table);
  return check.done({Type(dtype, table)});
}

llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  Tensor table = in.size() > 2 && in[2] ? copyOf(*in[2]) : Tensor(type.dtype, type.dims);
  std::optional<Tensor> wide; // where sums are left unrounded
  if (in[0]->dtype() != type.dtype)
    wide = fromDoubles(type.dtype, in[0]->dims(), toDoubles(*in[0]));
  const Tensor &dy = wide ? *wide : *in[0];
  int64_t bad = gatherGrad(table.mutableData<char>(), dy.bytes(), AxisView(type.dims, 0),
                           indicesOf(*in[1]), type.dtype);
  if (bad != kAllInRange)
    return indexError(*in[1], bad, "one of " + std::to_string(type.dims[0]) + " rows");
  return Tensors{table};
}

/// Only the rows that the ids name are touched.
Cost cost(const Op &op) {
  return {0,
          2.0 * double(op.result()->type().numBytes()) + double(op.operand(1)->type().numBytes())};
}

/// Additions, the gradient read, the table written.
Cost gradCost(const Op &op) {
  const Type &dy = op.operand(0)->type();
  return {double(dy.numElements()),
          2.0 * double(dy.numBytes()) + double(op.result()->type().numBytes())};
}

int64_t gradWorkspace(const Op &op) {
  const Type &dy = op.operand(0)->type();
  return rowSumsWorkspace(op.operand(1)->type().numElements(), dy.dim(-1), dy.dtype == DType::F64 ? 8 : 4);
}

constexpr const char *kOperands[] = {"table", "ids"};
constexpr const char *kGradOperands[] = {"dy", "ids", "acc?"};
constexpr const char *kGradResults[] = {"dtable"};
constexpr InPlace kAccumulates[] = {{2, 0}};

} // namespace

constinit const OpDef kEmbedding = {.mnemonic = "embedding",
                                    .operands = kOperands,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .evaluate = evaluate,
                                    .cost = cost};

constinit const OpDef kEmbeddingGrad = {.mnemonic = "embedding_grad",
                                        .operands = kGradOperands,
                                        .results = kGradResults,
                                        .infer = inferGrad,
                                        .notDifferentiable = kIsGradient,
                                        .evaluate = evaluateGrad,
                                        .cost = gradCost,
                                        .inPlace = kAccumulates,
                                        .inPlaceRequired = true,
                                        .workspace = gradWorkspace};

} // namespace shardc
