// SPDX-License-Identifier: Apache-2.0
// y = (x - mean) * rstd * scale + bias over the dims [axis, rank), rstd = 1 / sqrt(var + eps).
// mean and rstd, one each row, are results for the gradient op. x, scale, bias and y may be f32 beside 16-bit ones: y has the type
// that attribute `to` names, or x's. The gradient of x has the type of y's, those of scale and bias have scale's.
#include "ir/graph/Builder.h"
#include "ir/ops/Norm.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  NormDims dims = checkNorm(check, 0, /*hasEps=*/true);
  for (unsigned i = 1; i < 3; ++i)
    if (check.has(i)) {
      checkBeside(check, 0, i);
      check.hasDims(i, dims.row);
    }
  if (check.has(1) && check.has(2))
    check.sameDType(1, 2);
  Type row(wideType(check.in(0).dtype), dims.rows);
  return check.done({normResult(check), row, row});
}

// mean and rstd may be read by others too, if the model exports them.
void gradient(GradContext &g) {
  Value *x = g.in(0), *mean = g.out(1), *rstd = g.out(2), *dx = nullptr;
  auto add = [&](Value *part) {
    part = g.cast(part, normGradType(g));
    dx = dx ? g.add(dx, part) : g.expand(part, x->type().dims);
  };
  if (g.dOut(0)) {
    bool affine = g.needs(1) || g.needs(2);
    llvm::Expected<Op *> made =
        g.create(kLayerNormGrad, {g.dOut(), x, mean, rstd, g.in(1)},
                 {{"axis", g.attrs().getInt("axis")}, {"affine", int64_t(affine)}});
    Op *op = llvm::cantFail(std::move(made));
    add(op->result(0));
    for (unsigned i : {1u, 2u})
      if (g.needs(i))
        g.setGrad(i, op->result(i));
  }
  if (x->type().numElements() != 0) {
    double n = double(x->type().numElements()) / double(mean->type().numElements());
    if (g.dOut(1))
      add(perRow(g, g.scale(g.dOut(1), 1 / n)));
    if (g.dOut(2))
      add(rstdGradient(g, g.dOut(2), rstd, g.sub(g.cast(x, mean->type().dtype), perRow(g, mean))));
  }
  if (dx)
    g.setGrad(0, dx);
}

Cost cost(const Op &op) {
  const Type &x = op.operand(0)->type();
  return {8.0 * double(x.numElements()), double(x.numBytes()) + double(op.result()->type().numBytes())};
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  NormDims dims(type.dims, normAxis(op, type));
  size_t rows = numElements(dims.rows), n = numElements(dims.row);
  std::vector<double> y = toDoubles(*in[0]), mean(rows), rstd(rows);
  std::vector<double> scale(n, 1), bias(n, 0);
  if (in.size() > 1 && in[1])
    scale = toDoubles(*in[1]);
  if (in.size() > 2 && in[2])
    bias = toDoubles(*in[2]);
  for (size_t r = 0; r < rows; ++r) {
    double *x = y.data() + r * n, square = 0;
    for (size_t i = 0; i < n; ++i)
      mean[r] += x[i] / double(n);
    for (size_t i = 0; i < n; ++i)
      square += (x[i] - mean[r]) * (x[i] - mean[r]);
    rstd[r] = 1 / std::sqrt(square / double(n) + numberOf(op, "eps"));
    for (size_t i = 0; i < n; ++i)
      x[i] = (x[i] - mean[r]) * rstd[r] * scale[i] + bias[i];
  }
  return Tensors{fromDoubles(type.dtype, type.dims, y), fromDoubles(wideType(type.dtype), dims.rows, mean),
                 fromDoubles(wideType(type.dtype), dims.rows, rstd)};
}

// Results dx and, if affine, dscale and dbias.
llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  NormDims dims = checkNorm(check, 0, /*hasEps=*/false);
  check.hasDims(1, check.in(0).dims);
  check.hasDims(2, dims.rows);
  check.hasDims(3, dims.rows);
  if (check.has(4))
    check.hasDims(4, dims.row);
  checkBeside(check, 0, 1);
  check.isStatisticOf(2, 1);
  check.isStatisticOf(3, 1);
  if (check.has(4))
    checkBeside(check, 0, 4);
  Type row(check.in(check.has(4) ? 4 : 0).dtype, dims.row);
  Types types{check.in(0)};
  if (check.flag("affine"))
    types.append({row, row});
  return check.done(types);
}

// With h = (x - mean) rstd, dh = dy scale: dx = rstd (dh - mean(dh) - h mean(dh h)).
llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  NormDims dims(type.dims, normAxis(op, type));
  size_t rows = numElements(dims.rows), n = numElements(dims.row);
  std::vector<double> dy = toDoubles(*in[0]), x = toDoubles(*in[1]), mean = toDoubles(*in[2]),
                      rstd = toDoubles(*in[3]), scale(n, 1), dscale(n), dbias(n), dx(dy.size());
  if (in.size() > 4 && in[4])
    scale = toDoubles(*in[4]);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, dot = 0;
    auto h = [&](size_t i) { return (x[r * n + i] - mean[r]) * rstd[r]; };
    for (size_t i = 0; i < n; ++i) {
      double dh = dy[r * n + i] * scale[i];
      sum += dh / double(n);
      dot += dh * h(i) / double(n);
      dscale[i] += dy[r * n + i] * h(i);
      dbias[i] += dy[r * n + i];
    }
    for (size_t i = 0; i < n; ++i)
      dx[r * n + i] = rstd[r] * (dy[r * n + i] * scale[i] - sum - h(i) * dot);
  }
  Tensors out{fromDoubles(type.dtype, type.dims, dx)};
  if (op.numResults() > 1) {
    out.push_back(fromDoubles(op.result(1)->type().dtype, dims.row, dscale));
    out.push_back(fromDoubles(op.result(2)->type().dtype, dims.row, dbias));
  }
  return out;
}

Cost gradCost(const Op &op) {
  const Type &x = op.operand(1)->type();
  return {14.0 * double(x.numElements()), double(x.numBytes()) + 2.0 * double(op.operand(0)->type().numBytes())};
}

constexpr const char *kOperands[] = {"x", "scale?", "bias?"};
constexpr const char *kResults[] = {"y", "mean", "rstd"};
constexpr const char *kGradOperands[] = {"dy", "x", "mean", "rstd", "scale?"};
constexpr const char *kGradResults[] = {"dx", "dscale", "dbias"};
constexpr OnnxRule::AttrRule kAttrs[] = {{"axis", "axis", -1}, {"epsilon", "eps", 1e-5}};

} // namespace

constinit const OpDef kLayerNorm = {.mnemonic = "layer_norm",
                                    .operands = kOperands,
                                    .results = kResults,
                                    .onnx = {"LayerNormalization", kAttrs},
                                    .rows = "mean = rowsum(x) * M; c = x - mean; rstd = 1 / sqrt(rowsum(c * c) * M + eps); "
                                            "y = c * rstd * [scale|1] + [bias|0];",
                                    .infer = infer,
                                    .gradient = gradient,
                                    .evaluate = evaluate,
                                    .cost = cost,
                                    .inPlace = kInPlace0};

constinit const OpDef kLayerNormGrad = {.mnemonic = "layer_norm_grad",
                                        .operands = kGradOperands,
                                        .results = kGradResults,
                                        .rows = "h = (x - mean) * rstd; dh = dy * [scale|1]; "
                                                "dx = rstd * (dh - rowsum(dh) * M - h * (rowsum(dh * h) * M)); "
                                                "dscale = colsum(dy * h); dbias = colsum(dy);",
                                        .perRow = 1 << 2 | 1 << 3,
                                        .infer = inferGrad,
                                        .notDifferentiable = kIsGradient,
                                        .evaluate = evaluateGrad,
                                        .cost = gradCost,
                                        .inPlace = kInPlace01};

} // namespace shardc
