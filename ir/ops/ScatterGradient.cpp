// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/ScatterGradient.h"

namespace shardc {
namespace {

struct Rule {
  GradContext &g;
  llvm::function_ref<Value *(Value *)> gather;
  llvm::function_ref<Value *(Value *, Value *, llvm::StringRef)> scatter;
  Value *data = g.in(0), *updates = g.in(2), *dy = g.dOut();
  DType dtype = dy->type().dtype;
  Value *zeros = g.scalar(dtype, 0), *ones = g.scalar(dtype, 1);

  Value *filled(const Value *like, double value) {
    return g.expand(g.scalar(dtype, value), like->type().dims);
  }
  /// 1 where a equals b, else 0.
  Value *same(Value *a, Value *b) { return g.cast(g.make(kEqual, {a, b}), dtype); }

  // Updates replace what was there.
  void none() {
    if (g.needs(0))
      g.setGrad(0, scatter(dy, filled(updates, 0), "none"));
    if (g.needs(2))
      g.setGrad(2, gather(dy));
  }

  void add() {
    g.setGrad(0, dy);
    if (g.needs(2))
      g.setGrad(2, gather(dy));
  }

  // The contributors that equal the result share its gradient evenly, as torch's amax.
  void extreme() {
    Value *y = g.out();
    Value *dataHit = same(data, y), *updateHit = same(updates, gather(y));
    Value *each = g.div(dy, scatter(dataHit, updateHit, "add"));
    if (g.needs(0))
      g.setGrad(0, g.mul(dataHit, each));
    if (g.needs(2))
      g.setGrad(2, g.mul(updateHit, gather(each)));
  }

  // d y / d x = product of the other factors: with p the product of the factors that are not 0 and
  // n the number of those that are: p / x where n = 0, p where x is the only 0, else 0.
  void mul() {
    Value *dataZero = g.make(kEqual, {data, zeros}), *updateZero = g.make(kEqual, {updates, zeros});
    Value *p = scatter(g.where(dataZero, ones, data), g.where(updateZero, ones, updates), "mul");
    Value *n = scatter(g.cast(dataZero, dtype), g.cast(updateZero, dtype), "add");
    auto others = [&](Value *x, Value *isZero, Value *p, Value *n) {
      Value *alone = g.where(g.make(kEqual, {n, ones}), p, zeros);
      Value *quotient = g.div(p, g.where(isZero, ones, x));
      return g.where(isZero, alone, g.where(g.make(kEqual, {n, zeros}), quotient, zeros));
    };
    if (g.needs(0))
      g.setGrad(0, g.mul(dy, others(data, dataZero, p, n)));
    if (g.needs(2))
      g.setGrad(2, g.mul(gather(dy), others(updates, updateZero, gather(p), gather(n))));
  }
};

} // namespace

void scatterGradient(GradContext &g, llvm::function_ref<Value *(Value *)> gather,
                     llvm::function_ref<Value *(Value *, Value *, llvm::StringRef)> scatter) {
  Rule rule{g, gather, scatter};
  switch (*parseScatter(g.attrs().getString("reduction"))) {
  case Scatter::None:
    return rule.none();
  case Scatter::Add:
    return rule.add();
  case Scatter::Mul:
    return rule.mul();
  case Scatter::Max:
  case Scatter::Min:
    return rule.extreme();
  }
}

} // namespace shardc
