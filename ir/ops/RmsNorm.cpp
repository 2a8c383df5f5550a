// SPDX-License-Identifier: Apache-2.0
// y = x * rstd * scale over the dims [axis, rank), rstd = 1 / sqrt(mean(x^2) + eps).
// rstd, one each row, is a result for the gradient op. x, scale and y may be f32 beside 16-bit ones: y has the type that attribute
// `to` names, or x's. The gradient of x has the type of y's, that of scale has scale's.
#include "ir/graph/Builder.h"
#include "ir/ops/Norm.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  NormDims dims = checkNorm(check, 0, /*hasEps=*/true);
  checkBeside(check, 0, 1);
  check.hasDims(1, dims.row);
  return check.done({normResult(check), Type(wideType(check.in(0).dtype), dims.rows)});
}

void gradient(GradContext &g) {
  Value *x = g.in(0), *rstd = g.out(1), *dx = nullptr;
  if (g.dOut(0)) {
    llvm::Expected<Op *> made =
        g.create(kRmsNormGrad, {g.dOut(), x, rstd, g.in(1)},
                 {{"axis", g.attrs().getInt("axis")}, {"affine", int64_t(g.needs(1))}});
    Op *op = llvm::cantFail(std::move(made));
    dx = op->result(0);
    if (g.needs(1))
      g.setGrad(1, op->result(1));
  }
  if (g.dOut(1) && x->type().numElements() != 0) {
    Value *part = g.cast(rstdGradient(g, g.dOut(1), rstd, g.cast(x, rstd->type().dtype)), normGradType(g));
    dx = dx ? g.add(dx, part) : part;
  }
  if (dx)
    g.setGrad(0, dx);
}

Cost cost(const Op &op) {
  const Type &x = op.operand(0)->type();
  return {4.0 * double(x.numElements()), double(x.numBytes()) + double(op.result()->type().numBytes())};
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  NormDims dims(type.dims, normAxis(op, type));
  size_t rows = numElements(dims.rows), n = numElements(dims.row);
  std::vector<double> y = toDoubles(*in[0]), scale = toDoubles(*in[1]), rstd(rows);
  for (size_t r = 0; r < rows; ++r) {
    double *x = y.data() + r * n, square = 0;
    for (size_t i = 0; i < n; ++i)
      square += x[i] * x[i];
    rstd[r] = 1 / std::sqrt(square / double(n) + numberOf(op, "eps"));
    for (size_t i = 0; i < n; ++i)
      x[i] = x[i] * rstd[r] * scale[i];
  }
  return Tensors{fromDoubles(type.dtype, type.dims, y), fromDoubles(wideType(type.dtype), dims.rows, rstd)};
}

// Results dx and, if affine, dscale.
llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  NormDims dims = checkNorm(check, 0, /*hasEps=*/false);
  check.hasDims(1, check.in(0).dims);
  check.hasDims(2, dims.rows);
  check.hasDims(3, dims.row);
  checkBeside(check, 0, 1);
  checkBeside(check, 0, 3);
  check.isStatisticOf(2, 1);
  Types types{check.in(0)};
  if (check.flag("affine"))
    types.push_back(Type(check.in(3).dtype, dims.row));
  return check.done(types);
}

// With h = x rstd, dh = dy scale: dx = rstd (dh - h mean(dh h)).
llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  NormDims dims(type.dims, normAxis(op, type));
  size_t rows = numElements(dims.rows), n = numElements(dims.row);
  std::vector<double> dy = toDoubles(*in[0]), x = toDoubles(*in[1]), rstd = toDoubles(*in[2]),
                      scale = toDoubles(*in[3]), dscale(n), dx(dy.size());
  for (size_t r = 0; r < rows; ++r) {
    double dot = 0;
    for (size_t i = 0; i < n; ++i) {
      double h = x[r * n + i] * rstd[r];
      dot += dy[r * n + i] * scale[i] * h / double(n);
      dscale[i] += dy[r * n + i] * h;
    }
    for (size_t i = 0; i < n; ++i)
      dx[r * n + i] = rstd[r] * (dy[r * n + i] * scale[i] - x[r * n + i] * rstd[r] * dot);
  }
  Tensors out{fromDoubles(type.dtype, type.dims, dx)};
  if (op.numResults() > 1)
    out.push_back(fromDoubles(op.result(1)->type().dtype, dims.row, dscale));
  return out;
}

Cost gradCost(const Op &op) {
  const Type &x = op.operand(1)->type();
  return {10.0 * double(x.numElements()), double(x.numBytes()) + 2.0 * double(op.operand(0)->type().numBytes())};
}

constexpr const char *kOperands[] = {"x", "scale"};
constexpr const char *kResults[] = {"y", "rstd"};
constexpr const char *kGradOperands[] = {"dy", "x", "rstd", "scale"};
constexpr const char *kGradResults[] = {"dx", "dscale"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"axis", "axis", -1}, {"epsilon", "eps", 1e-5}};

} // namespace

constinit const OpDef kRmsNorm = {.mnemonic = "rms_norm",
                                  .operands = kOperands,
                                  .results = kResults,
                                  .onnx = {"RMSNormalization", kAttrs},
                                  .rows = "rstd = 1 / sqrt(rowsum(x * x) * M + eps); y = x * rstd * scale;",
                                  .infer = infer,
                                  .gradient = gradient,
                                  .evaluate = evaluate,
                                  .cost = cost,
                                  .inPlace = kInPlace0};

constinit const OpDef kRmsNormGrad = {.mnemonic = "rms_norm_grad",
                                      .operands = kGradOperands,
                                      .results = kGradResults,
                                      .rows = "h = x * rstd; dh = dy * scale; dx = rstd * (dh - h * (rowsum(dh * h) * M)); "
                                              "dscale = colsum(dy * h);",
                                      .perRow = 1 << 2,
                                      .infer = inferGrad,
                                      .notDifferentiable = kIsGradient,
                                      .evaluate = evaluateGrad,
                                      .cost = gradCost,
                                      .inPlace = kInPlace01};

} // namespace shardc
