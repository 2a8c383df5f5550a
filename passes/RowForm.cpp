// SPDX-License-Identifier: Apache-2.0
#include "passes/RowForm.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {
namespace {

constexpr int64_t kMaxLength = 8192, kFewRows = 8;

/// From attribute `axes`, or `axis`, or the last dim. Null: they are neither the last nor the first dims.
std::optional<RowForm> space(const Op &op) {
  const Type &x = op.operand(0)->type();
  RowForm form{x.dims, x.rank() - 1, op.def().rows, {}};
  if (!op.attrs.has("axes")) {
    if (op.attrs.has("axis"))
      form.axis = normalAxis(op.attrs.getInt("axis"), x.rank());
    return form;
  }
  Ints axes = normalAxes(op.attrs.getInts("axes"), x.rank());
  auto runFrom = [&](int64_t first) {
    for (auto [i, axis] : llvm::enumerate(axes))
      if (axis != first + int64_t(i))
        return false;
    return !axes.empty();
  };
  int64_t count = axes.size();
  if (runFrom(x.rank() - count))
    form.axis = x.rank() - count;
  else if (runFrom(0) && op.def().columns)
    form.axis = count, form.lines = op.def().columns;
  else
    return std::nullopt;
  return form;
}

} // namespace

Dims RowForm::perRow() const {
  Dims result = dims;
  std::fill(result.begin() + axis, result.end(), 1);
  return result;
}

std::optional<RowForm> rowFormOf(const Op &op) {
  if (!op.def().rows || !op.operand(0)->type().isFloat())
    return std::nullopt;
  std::optional<RowForm> form = space(op);
  if (!form || form->axis < 1 || form->axis >= int64_t(form->dims.size()) || form->rows() < 1 || form->length() < 1 ||
      form->length() > kMaxLength)
    return std::nullopt;
  for (unsigned i = 0; i < op.numResults(); ++i) {
    std::string name = op.def().results.empty() ? "y" : op.def().results[i];
    bool isColumn = form->lines.contains(name + " = colsum(");
    bool isElement = !op.attrs.has("axes") && op.result(i)->type().dims == form->dims;
    form->results.push_back(isColumn ? RowKind::Column : isElement ? RowKind::Element : RowKind::Row);
  }
  if (llvm::is_contained(form->results, RowKind::Column) && form->rows() < kFewRows)
    return std::nullopt;
  return form;
}

ColumnTail tailOf(Value *columns) {
  ColumnTail tail{columns, columns->type().dtype, {}};
  while (tail.last->hasOneUse() && !tail.last->op()->graph().isOutput(tail.last)) {
    Op *user = tail.last->uses()[0].op;
    if (user->is(kCast) && user->result()->type().isFloat() && !isHalf(tail.dtype))
      tail.dtype = user->result()->type().dtype;
    else if (!user->is(kReshape))
      break;
    tail.chain.push_back(user);
    tail.last = user->result();
  }
  return tail;
}

namespace {

class SumJoiner {
public:
  explicit SumJoiner(Graph &graph) : graph_(graph) {}

  void run() {
    for (auto it = graph_.ops().begin(); it != graph_.ops().end();) {
      Op &op = *it++;
      if (op.is(kColumnSums)) {
        if (waiting_.size() == kMost || (!waiting_.empty() && (waiting_[0]->phase != op.phase || waiting_[0]->layer != op.layer)))
          flush(&op);
        waiting_.push_back(&op);
        pending_.insert(op.result());
      } else if (llvm::any_of(op.operands(), [&](Value *v) { return pending_.contains(v); })) {
        if (op.def().view) {
          views_.push_back(&op);
          pending_.insert(op.result());
        } else {
          flush(&op);
        }
      }
    }
    flush(nullptr);
  }

private:
  static constexpr size_t kMost = 32; ///< what one launch takes

  void flush(Op *before) {
    if (waiting_.size() > 1) {
      llvm::SmallVector<Value *> parts;
      std::string dtypes;
      for (Op *op : waiting_) {
        parts.push_back(op->operand(0));
        dtypes += (dtypes.empty() ? "" : ",") + op->attrs.getString("dtypes").str();
      }
      Builder b(graph_, before);
      b.stampLike(*waiting_.back());
      Op *joined = b.make(kColumnSums, parts, {{"dtypes", dtypes}})->op();
      for (auto [i, op] : llvm::enumerate(waiting_))
        graph_.replaceAllUses(op->result(), joined->result(i));
      for (Op *op : waiting_)
        graph_.erase(op);
      for (Op *view : views_)
        graph_.moveBefore(view, before);
    }
    waiting_.clear();
    views_.clear();
    pending_.clear();
  }

  Graph &graph_;
  llvm::SmallVector<Op *> waiting_, views_; ///< in order
  llvm::DenseSet<const Value *> pending_;   ///< their results
};

} // namespace

void joinColumnSums(Graph &graph) { SumJoiner(graph).run(); }

} // namespace shardc
