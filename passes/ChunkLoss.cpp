// SPDX-License-Identifier: Apache-2.0
// Logits are the widest rows of a language model, and live only between its last product and their own gradient. A chunk of rows at a time
// goes all the way there: product, loss, gradient in place of the logits, and what the gradient is needed for.
#include "passes/ChunkLoss.h"
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

constexpr int64_t kLogitBytes = int64_t(128) << 20;
constexpr int64_t kRowAlignment = 128; ///< of chunks: whole tiles of products
constexpr int64_t kMaxChunks = 256;    ///< of a batch beyond all bounds; chunks are larger then

/// The only user of a value, null if there are several, or it is an output.
Op *onlyUser(const Value *v) { return v->hasOneUse() && !v->op()->graph().isOutput(v) ? v->uses().front().op : nullptr; }

bool keepsLastDim(const Op &op) { return op.is(kReshape) && op.operand(0)->type().dim(-1) == op.result()->type().dim(-1); }

/// What stands between the last hidden rows and the gradients of them and of the weight.
struct Head {
  Op *product = nullptr, *loss = nullptr, *gradient = nullptr;
  /// Products of the logits' gradient: by rows with the weight, and over all rows with the hidden ones.
  llvm::SmallVector<Op *, 1> toHidden, toWeight;
};

/// The value of which `v` is another shape of the same rows.
Value *rootOf(Value *v) {
  while (keepsLastDim(*v->op()))
    v = v->op()->operand(0);
  return v;
}
bool isForward(Value *v) { return rootOf(v)->op()->phase == Phase::Forward; }

/// A product to which nothing is added or applied.
bool isPlain(const Op &op) {
  bool plain = op.is(kMatMul) && !op.attrs.has("act");
  for (unsigned i = 2; i < op.numOperands(); ++i)
    plain &= !op.operand(i);
  return plain;
}

/// Users of the logits' gradient, seen through reshapes that keep rows.
bool findProducts(Value *gradient, Head &head) {
  if (gradient->op()->graph().isOutput(gradient))
    return false;
  for (const Use &use : gradient->uses()) {
    Op *op = use.op;
    if (keepsLastDim(*op)) {
      if (!findProducts(op->result(), head))
        return false;
      continue;
    }
    if (!isPlain(*op) || !isForward(op->operand(1 - use.index)))
      return false;
    bool transposed = op->attrs.getInt(use.index == 0 ? "transpose_a" : "transpose_b", 0);
    Value *other = op->operand(1 - use.index);
    if (use.index == 0 && !transposed && other->type().rank() == 2)
      head.toHidden.push_back(op);
    else if (gradient->type().rank() == 2 && other->type().rank() == 2 && (use.index == 0) == transposed &&
             op->attrs.getInt(use.index == 0 ? "transpose_b" : "transpose_a", 0) == (use.index == 1))
      head.toWeight.push_back(op);
    else
      return false;
  }
  return true;
}

std::optional<Head> findHead(Op &loss) {
  Head head;
  head.loss = &loss;
  Value *logits = loss.operand(0);
  Graph &graph = loss.graph();
  if (graph.isOutput(logits) || graph.isOutput(loss.result(3)))
    return std::nullopt;
  for (const Use &use : logits->uses())
    if (use.op->is(kCrossEntropyGrad) && use.index == 1 && !head.gradient)
      head.gradient = use.op;
    else if (use.op != &loss)
      return std::nullopt;
  if (!head.gradient || onlyUser(loss.result(3)) != head.gradient || head.gradient->operand(2) != loss.operand(1))
    return std::nullopt;
  Op *product = logits->op();
  while (keepsLastDim(*product) && onlyUser(product->operand(0)))
    product = product->operand(0)->op();
  head.product = product;
  bool rows = isPlain(*product) && !graph.isOutput(product->result()) && !product->attrs.getInt("transpose_a", 0) &&
              product->operand(1)->type().rank() == 2;
  return rows && findProducts(head.gradient->result(), head) ? std::optional(head) : std::nullopt;
}

class Chunks {
public:
  explicit Chunks(const Head &head) : head_(head), graph_(head.loss->graph()), b_(graph_, head.gradient) {
    b_.phase = Phase::Backward;
  }

  void run(int64_t rows, int64_t each) {
    llvm::SmallVector<Value *> sums[3];
    std::vector<llvm::SmallVector<Value *>> hidden(head_.toHidden.size());
    std::vector<Value *> weight(head_.toWeight.size());
    for (int64_t first = 0; first < rows; first += each) {
      int64_t n = std::min(each, rows - first);
      Op *product = head_.product, *loss = head_.loss, *gradient = head_.gradient;
      b_.stampLike(*product);
      b_.phase = Phase::Backward;
      Value *logits = b_.make(kMatMul, {rowsOf(product->operand(0), first, n), product->operand(1)}, product->attrs);
      stamp(*loss);
      Value *labels = b_.slice(loss->operand(1), {first}, {n});
      Op *part = b_.make(kCrossEntropy, {logits, labels}, loss->attrs)->op();
      for (unsigned i = 0; i < 3; ++i)
        sums[i].push_back(part->result(i));
      Value *dlogits = b_.make(kCrossEntropyGrad, {gradient->operand(0), logits, labels, part->result(3)}, gradient->attrs);
      for (auto [op, parts] : llvm::zip(head_.toHidden, hidden)) {
        stamp(*op);
        parts.push_back(b_.make(kMatMul, {dlogits, rootOf(op->operand(1))}, op->attrs));
      }
      for (auto [op, sum] : llvm::zip(head_.toWeight, weight)) {
        stamp(*op);
        bool left = rootOf(op->operand(0))->op() == head_.gradient;
        Value *x = left ? dlogits : rowsOf(op->operand(0), first, n), *y = left ? rowsOf(op->operand(1), first, n) : dlogits;
        Value *term = b_.cast(b_.make(kMatMul, {x, y}, op->attrs), wideType(op->result()->type().dtype));
        sum = sum ? b_.add(sum, term) : term;
      }
    }
    Value *totals[] = {total(sums[0]), total(sums[1]), total(sums[2])};
    moveTail();
    for (unsigned i = 0; i < 3; ++i)
      graph_.replaceAllUses(head_.loss->result(i), totals[i]);
    for (auto [op, parts] : llvm::zip(head_.toHidden, hidden))
      replace(*op, b_.reshape(b_.make(kConcat, parts, {{"axis", int64_t(0)}}), op->result()->type().dims));
    for (auto [op, sum] : llvm::zip(head_.toWeight, weight))
      replace(*op, sum);
  }

private:
  void stamp(const Op &op) {
    b_.stampLike(op);
    b_.phase = Phase::Backward;
  }
  /// Rows [first, first + n) of what has rows in all dims but the last.
  Value *rowsOf(Value *v, int64_t first, int64_t n) {
    int64_t last = v->type().dim(-1);
    Value *&rows = rows_[{rootOf(v), first}];
    if (!rows)
      rows = b_.slice(b_.reshape(rootOf(v), {v->type().numElements() / last, last}), {first, 0}, {n, last});
    return rows;
  }
  Value *total(llvm::ArrayRef<Value *> terms) {
    stamp(*head_.loss);
    Value *sum = terms[0];
    for (Value *term : terms.drop_front())
      sum = b_.add(sum, term);
    return sum;
  }
  /// Of a product; who would widen the rounded result takes what was not rounded.
  void replace(Op &product, Value *made) {
    stamp(product);
    Value *old = product.result();
    if (made->type().dtype != old->type().dtype)
      for (const Use &use : llvm::SmallVector<Use>(old->uses().begin(), old->uses().end()))
        if (use.op->is(kCast) && use.op->result()->type().dtype == made->type().dtype)
          graph_.replaceAllUses(use.op->result(), made);
    graph_.replaceAllUses(old, b_.cast(made, old->type().dtype));
  }
  /// What the forward pass makes of the sums comes behind the last chunk.
  void moveTail() {
    llvm::DenseSet<const Op *> tail{head_.loss};
    llvm::SmallVector<Op *> moved;
    for (Op &op : graph_.ops())
      if (op.phase == Phase::Forward && llvm::any_of(op.operands(), [&](Value *v) { return v && tail.contains(v->op()); })) {
        tail.insert(&op);
        moved.push_back(&op);
      }
    for (Op *op : moved) {
      op->phase = Phase::Backward;
      graph_.moveBefore(op, head_.gradient);
    }
  }

  const Head &head_;
  Graph &graph_;
  Builder b_;
  llvm::DenseMap<std::pair<Value *, int64_t>, Value *> rows_;
};

} // namespace

void chunkLoss(Graph &graph, int64_t bytes) {
  llvm::SmallVector<Op *> losses;
  for (Op &op : graph.ops())
    if (op.is(kCrossEntropy) && op.phase == Phase::Forward)
      losses.push_back(&op);
  for (Op *loss : losses) {
    const Type &logits = loss->operand(0)->type();
    int64_t rows = logits.dim(0), chunks = (logits.numBytes() + bytes - 1) / std::max<int64_t>(bytes, 1);
    chunks = std::min(chunks, kMaxChunks);
    if (chunks < 2 || rows < 2)
      continue;
    std::optional<Head> head = findHead(*loss);
    if (!head)
      continue;
    int64_t each = (rows + chunks - 1) / chunks;
    if (each > kRowAlignment)
      each = (each + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    Chunks(*head).run(rows, each);
  }
}

llvm::Error chunkLoss(Graph &graph, const CompileOptions &) {
  chunkLoss(graph, kLogitBytes);
  return llvm::Error::success();
}

} // namespace shardc
