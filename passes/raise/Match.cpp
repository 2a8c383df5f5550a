// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Match.h"
#include "ir/graph/Fold.h"
#include <cmath>

namespace shardc::match {

std::optional<double> number(const Value *value) {
  while (value && value->op()->def().view)
    value = value->op()->operand(0);
  const Tensor *t = constantOf(value);
  if (!t || t->numElements() == 0)
    return std::nullopt;
  double first = t->asDouble(0);
  for (int64_t i = 1, n = t->numElements(); i < n; ++i)
    if (t->asDouble(i) != first)
      return std::nullopt;
  return first;
}

bool isNumber(const Value *value, double wanted) {
  std::optional<double> n = number(value);
  return n && std::abs(*n - wanted) <= 1e-6 * std::abs(wanted);
}

bool binary(const Value *value, const OpDef &def, Value *&a, Value *&b) {
  if (!value || !value->op()->is(def))
    return false;
  a = value->op()->operand(0);
  b = value->op()->operand(1);
  return true;
}

bool unary(const Value *value, const OpDef &def, Value *&a) {
  if (!value || !value->op()->is(def))
    return false;
  a = value->op()->operand(0);
  return true;
}

bool withNumber(const Value *value, const OpDef &def, Value *&a, double &b) {
  Value *x, *y;
  if (!binary(value, def, x, y))
    return false;
  if (std::optional<double> n = number(y)) {
    a = x;
    b = *n;
    return true;
  }
  std::optional<double> n = number(x);
  if (!n)
    return false;
  a = y;
  b = *n;
  return true;
}

bool square(const Value *value, Value *&x) {
  Value *a, *b;
  if (binary(value, kPow, a, b) && isNumber(b, 2)) {
    x = a;
    return true;
  }
  x = a;
  return binary(value, kMul, x, b) && x == b;
}

bool reciprocal(const Value *value, Value *&s) {
  Value *a, *b;
  if (unary(value, kReciprocal, s))
    return true;
  if (binary(value, kPow, a, b) && isNumber(b, -1)) {
    s = a;
    return true;
  }
  return binary(value, kDiv, a, s) && isNumber(a, 1);
}

bool meanOfLastDim(const Value *value, Value *&x) {
  Value *sum, *count;
  double factor;
  if (binary(value, kDiv, sum, count) && number(count))
    factor = 1 / *number(count);
  else if (!withNumber(value, kMul, sum, factor))
    return false;
  if (!unary(sum, kReduceSum, x) || x->type().rank() == 0)
    return false;
  Ints axes = sum->op()->attrs.getInts("axes");
  int64_t last = x->type().rank() - 1, n = x->type().dim(last);
  return axes.size() == 1 && (axes[0] == last || axes[0] == -1) && sum->op()->attrs.getInt("keep_dims", 0) &&
         std::abs(factor * n - 1) < 1e-6;
}

bool rootMeanSquare(const Value *value, Value *&x, double &eps) {
  Value *variance, *mean, *squares;
  return unary(value, kSqrt, variance) && withNumber(variance, kAdd, mean, eps) && eps > 0 && eps < 1e-2 &&
         meanOfLastDim(mean, squares) && square(squares, x);
}

Value *guarded(const Value *value) {
  const Op *op = value->op();
  Value *checked;
  bool is = op->is(kWhere) && unary(op->operand(0), kIsNan, checked) && checked == op->operand(2) && number(op->operand(1)) == 0.0;
  return is ? checked : nullptr;
}

static void collect(Value *value, bool root, Product &out) {
  if (std::optional<double> n = number(value)) {
    out.number *= *n;
    return;
  }
  Value *a, *b;
  bool open = root || value->hasOneUse();
  if (open && binary(value, kMul, a, b) && a != b) {
    collect(a, false, out);
    collect(b, false, out);
  } else if (open && binary(value, kDiv, a, b) && number(b)) {
    collect(a, false, out);
    out.number /= *number(b);
  } else {
    out.factors.push_back(value);
  }
}

Product product(Value *value) {
  Product out;
  collect(value, /*root=*/true, out);
  return out;
}

static void collectTerms(Value *value, bool root, llvm::SmallVectorImpl<Value *> &out) {
  Value *a, *b;
  if ((root || value->hasOneUse()) && binary(value, kAdd, a, b)) {
    collectTerms(a, false, out);
    collectTerms(b, false, out);
  } else {
    out.push_back(value);
  }
}

llvm::SmallVector<Value *, 4> terms(Value *value) {
  llvm::SmallVector<Value *, 4> out;
  collectTerms(value, /*root=*/true, out);
  return out;
}

bool isVector(const Value *value, int64_t length) {
  return value->type().isFloat() && value->type().rank() == 1 && value->type().dim(0) == length;
}

void replace(Value *root, Value *with) {
  Graph &graph = root->op()->graph();
  with->setBatchMajor(root->batchMajor());
  std::string name = root->name().str();
  graph.replaceAllUses(root, with);
  graph.rename(root, name + ".old");
  graph.rename(with, name);
}

bool usedOnce(const Value *value) { return value->hasOneUse() && !value->op()->graph().isOutput(value); }

Value *takeScale(Value *value, double &scale) {
  Product p = product(value);
  if (p.factors.size() == 1 && p.factors[0] != value) {
    scale *= p.number;
    return p.factors[0];
  }
  return value;
}

Value *skipReshape(Value *value) {
  Value *before;
  bool joins = usedOnce(value) && unary(value, kReshape, before) && std::abs(before->type().rank() - value->type().rank()) == 1 &&
               before->type().rank() >= 3 && before->type().dim(-1) == value->type().dim(-1) &&
               before->type().dim(-2) == value->type().dim(-2);
  return joins ? before : value;
}

Value *swappedLastTwo(const Value *value) {
  if (!value->op()->is(kTranspose))
    return nullptr;
  const Ints &perm = value->op()->attrs.getInts("perm");
  const int64_t rank = perm.size();
  for (int64_t i = 0; i < rank; ++i)
    if (perm[i] != (i < rank - 2 ? i : 2 * rank - 3 - i))
      return nullptr;
  return rank >= 2 ? value->op()->operand(0) : nullptr;
}

} // namespace shardc::match
