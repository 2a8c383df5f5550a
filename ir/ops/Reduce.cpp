// SPDX-License-Identifier: Apache-2.0
// Sums, products and extremes over `axes`; with `keep_dims` these stay as dims of 1.
#include "ir/base/ScalarMath.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include <limits>

namespace shardc {
namespace {

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  const Type &x = check.in(0);
  if (x.dtype == DType::Bool)
    check.fail("operand x: got bool, wanted a number type");
  Ints axes = check.axes("axes", x.rank());
  bool keep = check.flag("keep_dims");
  if (check.failed())
    return check.error();
  return check.done({Type(x.dtype, reducedDims(x.dims, axes, keep))});
}

llvm::Expected<Types> inferExtreme(const Op &op) {
  llvm::Expected<Types> types = infer(op);
  if (!types)
    return types;
  OpCheck check(op);
  if (check.in(0).numElements() == 0 && types->front().numElements() != 0)
    check.fail("operand x: got no elements (" + formatDims(check.in(0).dims) +
               "), wanted at least one for each result");
  return check.done(*types);
}

Ints axesOf(GradContext &g) {
  return normalAxes(g.attrs().getInts("axes"), g.in(0)->type().rank());
}

/// A value of the result's dims, with the reduced dims as 1, so that it broadcasts to the operand.
Value *kept(GradContext &g, Value *value) {
  return g.reshape(value, reducedDims(g.in(0)->type().dims, axesOf(g), /*keep=*/true));
}

void sumGradient(GradContext &g) {
  g.setGrad(0, g.expand(kept(g, g.dOut()), g.in(0)->type().dims));
}

// Equal extremes share evenly, as torch.amax.
void extremeGradient(GradContext &g) {
  Value *x = g.in(0), *dy = g.dOut();
  Value *hit = g.cast(g.make(kEqual, {x, kept(g, g.out())}), dy->type().dtype);
  Value *count = g.sum(hit, axesOf(g), /*keepDims=*/true);
  g.setGrad(0, g.mul(hit, g.div(kept(g, dy), count)));
}

// dy/dx = product of the other elements: with p the product of those that are not 0 and n the
// number of those that are: p / x where n = 0, p where x is the only 0, else 0.
void prodGradient(GradContext &g) {
  Value *x = g.in(0), *dy = g.dOut();
  DType dtype = dy->type().dtype;
  Value *zero = g.scalar(dtype, 0), *one = g.scalar(dtype, 1);
  Value *isZero = g.make(kEqual, {x, zero}), *factors = g.where(isZero, one, x);
  Value *p = g.make(kReduceProd, {factors}, {{"axes", axesOf(g)}, {"keep_dims", int64_t(1)}});
  Value *n = g.sum(g.cast(isZero, dtype), axesOf(g), /*keepDims=*/true);
  Value *alone = g.where(g.make(kEqual, {n, one}), p, zero);
  Value *quotient = g.where(g.make(kEqual, {n, zero}), g.div(p, factors), zero);
  g.setGrad(0, g.mul(kept(g, dy), g.where(isZero, alone, quotient)));
}

// T is double, or int64_t, exact with wrap-around.
template <typename T> using Limits = std::numeric_limits<T>;
struct Sum {
  template <typename T> static T first() { return 0; }
  template <typename T> static T of(T a, T b) { return scalar::add(a, b); }
};
struct Prod {
  template <typename T> static T first() { return 1; }
  template <typename T> static T of(T a, T b) { return scalar::mul(a, b); }
};
struct Max {
  template <typename T> static T first() {
    return Limits<T>::has_infinity ? -Limits<T>::infinity() : Limits<T>::lowest();
  }
  template <typename T> static T of(T a, T b) { return scalar::max(a, b); }
};
struct Min {
  template <typename T> static T first() {
    return Limits<T>::has_infinity ? Limits<T>::infinity() : Limits<T>::max();
  }
  template <typename T> static T of(T a, T b) { return scalar::min(a, b); }
};

template <typename Fold, typename T, typename Read>
std::vector<T> fold(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> axes, Read read) {
  // Strides of the result, as seen from the operand's dims.
  Dims kept = reducedDims(dims, axes, /*keep=*/true), strides = broadcastStrides(kept, dims);
  Dims index(dims.size(), 0);
  std::vector<T> y(numElements(kept), Fold::template first<T>());
  for (int64_t i = 0, n = numElements(dims); i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      at += index[d] * strides[d];
    y[at] = Fold::template of<T>(y[at], read(i));
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];)
      index[d] = 0;
  }
  return y;
}

template <typename Fold> llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  const Type &type = op.result()->type();
  const Tensor &x = *in[0];
  Ints axes = normalAxes(op.attrs.getInts("axes"), x.rank());
  if (x.dtype() != DType::I64)
    return Tensors{
        fromDoubles(type.dtype, type.dims,
                    fold<Fold, double>(x.dims(), axes, [&](int64_t i) { return x.asDouble(i); }))};
  std::vector<int64_t> y =
      fold<Fold, int64_t>(x.dims(), axes, [&](int64_t i) { return x.asInt(i); });
  return Tensors{Tensor::of<int64_t>(DType::I64, type.dims, y)};
}

constexpr OpDef reduce(const char *mnemonic, llvm::Expected<Types> (*infer)(const Op &),
                       void (*gradient)(GradContext &), Evaluate evaluate, const char *rows = nullptr,
                       const char *columns = nullptr) {
  OpDef def{.mnemonic = mnemonic};
  def.operands = kNamesX;
  def.infer = infer;
  def.gradient = gradient;
  def.evaluate = evaluate;
  def.layouts = kStrided;
  def.rows = rows;
  def.columns = columns;
  return def;
}

} // namespace

constinit const OpDef kReduceSum =
    reduce("reduce_sum", infer, sumGradient, evaluate<Sum>, "y = rowsum(x);", "y = colsum(x);");
constinit const OpDef kReduceMax =
    reduce("reduce_max", inferExtreme, extremeGradient, evaluate<Max>, "y = rowmax(x);");
constinit const OpDef kReduceMin =
    reduce("reduce_min", inferExtreme, extremeGradient, evaluate<Min>);
constinit const OpDef kReduceProd = reduce("reduce_prod", infer, prodGradient, evaluate<Prod>);

} // namespace shardc
