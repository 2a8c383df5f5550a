// SPDX-License-Identifier: Apache-2.0
// What layer_norm and rms_norm share: rows are normalised over the dims [axis, rank).
#pragma once

#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"

namespace shardc {

/// dims before the axis (one row each), and of a row.
struct NormDims {
  Dims rows, row;
  NormDims(llvm::ArrayRef<int64_t> dims, int64_t axis)
      : rows(dims.take_front(axis)), row(dims.drop_front(axis)) {}
};

/// Attributes axis and eps, operand 0 float. Requires nothing; ask `check.failed()`.
inline NormDims checkNorm(OpCheck &check, unsigned x, bool hasEps) {
  check.isFloat(x);
  int64_t axis = check.axis("axis", check.in(x).rank());
  if (hasEps && !(check.number("eps") >= 0))
    check.fail("attribute 'eps': got a negative number, wanted one from 0 on");
  return NormDims(check.in(x).dims, axis);
}

/// Operands of one type, or f32 and a 16-bit float.
inline void checkBeside(OpCheck &check, unsigned i, unsigned j) {
  const DType a = check.in(i).dtype, b = check.in(j).dtype;
  if (wideType(a) != wideType(b) || (isHalf(a) && isHalf(b)))
    check.sameDType(i, j);
}

/// With the dims of x; of the type that attribute `to` names, else of x's.
inline Type normResult(OpCheck &check) {
  const Type &x = check.in(0);
  if (!check.hasAttr("to"))
    return x;
  std::optional<DType> to = parseDType(check.text("to"));
  if (!to || wideType(*to) != wideType(x.dtype))
    check.fail("attribute 'to': got '" + check.text("to") + "', wanted the type of x, f32 or a 16-bit float");
  return Type(to.value_or(x.dtype), x.dims);
}

/// Of the gradient of x: as that of y comes.
inline DType normGradType(GradContext &g) { return (g.dOut() ? g.dOut() : g.out())->type().dtype; }

/// One number each row, with 1 for the row's dims, so that it broadcasts to operand 0.
inline Value *perRow(GradContext &g, Value *statistic) {
  Dims dims = statistic->type().dims;
  dims.resize(g.in(0)->type().dims.size(), 1);
  return g.reshape(statistic, dims);
}

/// What a use of rstd itself adds to the gradient of x: -drstd rstd^3 (x - mean) / n.
inline Value *rstdGradient(GradContext &g, Value *drstd, Value *rstd, Value *centered) {
  double n = double(centered->type().numElements()) / double(rstd->type().numElements());
  Value *cube = g.mul(rstd, g.mul(rstd, rstd));
  return g.mul(perRow(g, g.scale(g.mul(drstd, cube), -1 / n)), centered);
}

inline int64_t normAxis(const Op &op, const Type &x) {
  return normalAxis(op.attrs.getInt("axis"), x.rank());
}

} // namespace shardc
