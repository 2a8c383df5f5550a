// SPDX-License-Identifier: Apache-2.0
// Comparison, logic and choice element by element.
#include "ir/ops/Pointwise.h"

namespace shardc {
namespace {

llvm::Expected<Types> inferLogic(const Op &op) {
  OpCheck check(op);
  for (unsigned i = 0; i < op.numOperands(); ++i)
    check.isType(i, DType::Bool);
  if (check.failed())
    return check.error();
  return inferComparison(op);
}

llvm::Expected<Types> inferFloatTest(const Op &op) {
  OpCheck check(op);
  check.isFloat(0);
  return check.done({Type(DType::Bool, check.in(0).dims)});
}

llvm::Expected<Types> inferWhere(const Op &op) {
  OpCheck check(op);
  check.isType(0, DType::Bool);
  check.sameDType(1, 2);
  std::optional<Dims> dims = broadcastDims(check.in(1).dims, check.in(2).dims);
  if (dims)
    dims = broadcastDims(check.in(0).dims, *dims);
  if (!dims)
    check.fail("dims do not broadcast: got " + formatDims(check.in(0).dims) + ", " +
               formatDims(check.in(1).dims) + " and " + formatDims(check.in(2).dims) +
               ", wanted equal ones or 1");
  if (check.failed())
    return check.error();
  return check.done({Type(check.in(1).dtype, *dims)});
}

void whereGradient(GradContext &g) {
  Value *zero = g.scalar(g.dOut()->type().dtype, 0);
  if (g.needs(1))
    g.setGrad(1, g.where(g.in(0), g.dOut(), zero));
  if (g.needs(2))
    g.setGrad(2, g.where(g.in(0), zero, g.dOut()));
}

constexpr const char *kWhereOperands[] = {"condition", "x", "y"};

} // namespace

constinit const OpDef kEqual = pointwise2("equal", "Equal", "a == b", nullptr, inferComparison);
constinit const OpDef kLess = pointwise2("less", "Less", "a < b", nullptr, inferComparison);
constinit const OpDef kLessEqual =
    pointwise2("less_equal", "LessOrEqual", "a <= b", nullptr, inferComparison);
constinit const OpDef kGreater =
    pointwise2("greater", "Greater", "a > b", nullptr, inferComparison);
constinit const OpDef kGreaterEqual =
    pointwise2("greater_equal", "GreaterOrEqual", "a >= b", nullptr, inferComparison);
constinit const OpDef kAnd = pointwise2("and", "And", "a && b", nullptr, inferLogic);
constinit const OpDef kOr = pointwise2("or", "Or", "a || b", nullptr, inferLogic);
constinit const OpDef kXor = pointwise2("xor", "Xor", "a != b", nullptr, inferLogic);
constinit const OpDef kNot = pointwise1("not", "Not", "!a", nullptr, inferLogic);
constinit const OpDef kIsNan = pointwise1("is_nan", "IsNaN", "isnan(a)", nullptr, inferFloatTest);
constinit const OpDef kIsInf = pointwise1("is_inf", nullptr, "isinf(a)", nullptr, inferFloatTest);
constinit const OpDef kWhere =
    pointwise("where", "Where", "a ? b : c", kWhereOperands, inferWhere, whereGradient);

} // namespace shardc
