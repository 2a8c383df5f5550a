// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/Narrow.h"
#include "ir/graph/Builder.h"
#include "ir/graph/Fold.h"
#include "ir/ops/Reference.h"
#include "passes/precision/Wide.h"
#include <cmath>

namespace shardc::precision {
namespace {

double largest(DType narrow) { return narrow == DType::F16 ? 65504.0 : 0x1.FEp127; }

/// Values of the type, infinities become its largest ones.
Tensor roundedInRange(const Tensor &tensor, DType narrow) {
  double most = largest(narrow);
  std::vector<double> values = toDoubles(tensor);
  for (double &value : values)
    value = std::isnan(value) ? value : std::clamp(value, -most, most);
  return fromDoubles(narrow, tensor.dims(), values);
}

class Narrowing {
public:
  Narrowing(Graph &graph, DType narrow) : graph_(graph), narrow_(narrow) {}

  void run() {
    for (Parameter &p : graph_.parameters)
      if (p.type.dtype == DType::F32) {
        if (!staysWide(p))
          p.type.dtype = narrow_;
        if (p.value) {
          p.value->setType(p.type);
          dependent_.insert(p.value);
        }
      }
    findDependent();
    wide_ = chooseWide(graph_, dependent_, /*products=*/narrow_ == DType::F16);
    for (auto it = graph_.ops().begin(); it != graph_.ops().end();) {
      Op &op = *it++;
      if (dependsOnParameters(op) && !op.is(kParam))
        retype(op);
    }
  }

private:
  /// Scales and biases of norms: few numbers, and each would be a wrong factor of all that it meets.
  static bool staysWide(const Parameter &p) {
    return p.value && p.value->hasUses() && llvm::all_of(p.value->uses(), [](const Use &use) { return isNorm(*use.op) && use.index > 0; });
  }
  static bool isNorm(const Op &op) { return op.is(kLayerNorm) || op.is(kRmsNorm); }

  void findDependent() {
    for (Op &op : graph_.ops()) {
      bool depends = llvm::any_of(op.operands(), [&](Value *v) { return dependent_.contains(v); });
      for (unsigned i = 0; depends && i < op.numResults(); ++i)
        dependent_.insert(op.result(i));
      if (!depends)
        findHuge(op);
    }
  }
  bool dependsOnParameters(const Op &op) const { return op.numResults() && dependent_.contains(op.result()); }

  /// What computes with numbers beyond the range (fills of masks) may leave it.
  void findHuge(const Op &op) {
    bool huge = llvm::any_of(op.operands(), [&](Value *v) { return huge_.contains(v); });
    if (const Tensor *t = constantOf(op.numResults() ? op.result() : nullptr); t && t->dtype() == DType::F32)
      for (int64_t i = 0, n = t->numElements(); i < n && !huge; ++i)
        huge = std::abs(t->asDouble(i)) > largest(narrow_);
    for (unsigned i = 0; huge && i < op.numResults(); ++i)
      if (op.result(i)->type().isFloat())
        huge_.insert(op.result(i));
  }

  /// A summand that only the next sum reads stays in its register: it is not rounded, and nobody keeps it for the backward pass.
  bool isSummand(const Op &op) const {
    bool adds = op.is(kAdd) || op.is(kSub) || op.is(kMul) || op.is(kNeg) || op.is(kDropout);
    const Value *v = op.numResults() == 1 ? op.result() : nullptr;
    if (!adds || wide_.values.contains(v) || !v->hasOneUse() || graph_.isOutput(v) || v->type().dtype != DType::F32)
      return false;
    const Op &user = *v->uses().front().op;
    return (user.is(kAdd) || user.is(kSub) || user.is(kDropout)) && user.result()->type().dims == v->type().dims;
  }

  /// Sums of summands are rounded at their end.
  void roundResult(Op &op) {
    Value *v = op.result();
    auto next = std::next(op.getIterator());
    Builder b(graph_, next == graph_.ops().end() ? nullptr : &*next);
    b.stampLike(op);
    llvm::SmallVector<Use, 4> uses(v->uses().begin(), v->uses().end());
    Value *rounded = b.cast(v, narrow_);
    rounded->setBatchMajor(v->batchMajor());
    for (const Use &use : uses)
      use.op->setOperand(use.index, rounded);
    for (auto &[name, value] : llvm::SmallVector<std::pair<std::string, Value *>>(graph_.outputs()))
      if (value == v)
        graph_.setOutput(name, rounded);
  }

  void retype(Op &op) {
    const bool wide = wide_.ops.contains(&op), wideResult = wide_.values.contains(op.result());
    const bool summand = !wide && isSummand(op);
    const bool inFloats = summand || llvm::any_of(op.operands(), [&](Value *v) { return summands_.contains(v); });
    if (!wide && op.def().scalar && (inFloats || wideResult)) {
      for (unsigned i = 0; i < op.numOperands(); ++i)
        if (Value *v = op.operand(i); v && (v->type().dtype == narrow_ || huge_.contains(v)))
          op.setOperand(i, converted(v, DType::F32));
      if (summand)
        summands_.insert(op.result());
      else if (!wideResult)
        roundResult(op);
      return;
    }
    for (unsigned i = 0; i < op.numOperands(); ++i)
      if (Value *v = op.operand(i); v && !op.is(kCrossEntropy) && v->type().dtype == (wide ? narrow_ : DType::F32) && !takesWide(op, i))
        op.setOperand(i, converted(v, wide ? DType::F32 : narrow_));
    if (!wide && op.is(kCast) && op.attrs.getString("to") == "f32")
      op.attrs.set("to", toString(narrow_).str());
    if (!wide && op.is(kPad) && op.operand(0)->type().dtype == narrow_)
      op.attrs.set("value", std::clamp(op.attrs.getFloat("value", 0), -largest(narrow_), largest(narrow_)));
    const DType result = wideResult ? DType::F32 : narrow_;
    if (isNorm(op) && !wide && op.operand(0)->type().dtype != result)
      op.attrs.set("to", toString(result).str());
    else if (wideResult && !isNorm(op))
      op.attrs.set("wide", int64_t(1));
    Types types = llvm::cantFail(op.def().infer(op));
    for (unsigned i = 0; i < op.numResults(); ++i)
      op.result(i)->setType(types[i]);
  }

  /// What may be f32 beside 16-bit operands, if it is wide. Scale and bias of a norm have one type.
  bool takesWide(const Op &op, unsigned operand) const {
    if (isNorm(op) && operand > 0)
      return llvm::all_of(op.operands().drop_front(), [](Value *v) { return !v || v->type().dtype == DType::F32; });
    return operand == 0 && (isNorm(op) || op.def().view) && dependent_.contains(op.operand(0));
  }

  /// One conversion, behind what defines the value, serves all.
  Value *converted(Value *v, DType to) {
    if (Value *made = converted_.lookup({v, unsigned(to)}))
      return made;
    return converted_[{v, unsigned(to)}] = convert(v, to);
  }

  Value *convert(Value *v, DType to) {
    auto next = std::next(v->op()->getIterator());
    Builder b(graph_, next == graph_.ops().end() ? nullptr : &*next);
    b.stampLike(*v->op());
    if (const Tensor *t = constantOf(v)) {
      Tensor narrow = roundedInRange(*t, narrow_);
      return b.constant(to == narrow_ ? narrow : fromDoubles(to, narrow.dims(), toDoubles(narrow)), v->name());
    }
    if (v->op()->def().view && v->op()->def().collective == Collective::None) { // less to convert, and it stays a view
      Value *view = b.make(v->op()->def(), {converted(v->op()->operand(0), to)}, v->op()->attrs, v->name());
      view->setBatchMajor(v->batchMajor());
      return view;
    }
    Value *from = v;
    if (huge_.contains(v)) {
      double most = largest(narrow_);
      from = b.make(kMax, {b.make(kMin, {v, b.scalar(DType::F32, most)}), b.scalar(DType::F32, -most)});
      from->setBatchMajor(v->batchMajor());
    }
    Value *made = b.cast(from, to);
    made->setBatchMajor(v->batchMajor());
    return made;
  }

  Graph &graph_;
  DType narrow_;
  llvm::DenseSet<const Value *> dependent_; ///< on a parameter
  llvm::DenseSet<const Value *> huge_;      ///< may be beyond the range of `narrow`
  llvm::DenseSet<const Value *> summands_;  ///< unrounded
  WideChoice wide_;
  llvm::DenseMap<std::pair<Value *, unsigned>, Value *> converted_;
};

} // namespace

void narrowValues(Graph &graph, DType narrow) { Narrowing(graph, narrow).run(); }

} // namespace shardc::precision
