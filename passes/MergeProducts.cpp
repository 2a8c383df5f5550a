// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "llvm/ADT/MapVector.h"
#include "passes/Buckets.h"
#include "passes/Passes.h"

namespace shardc {
namespace {

/// Where a parameter lies: elements [begin, end) of its bucket.
struct Place {
  int64_t bucket, begin, end;
  bool precedes(const Place &next) const { return bucket == next.bucket && end == next.begin; }
  bool operator<(const Place &other) const { return std::pair(bucket, begin) < std::pair(other.bucket, other.begin); }
};

class Merger {
public:
  explicit Merger(Graph &graph) : graph_(graph) {
    for (auto [i, bucket] : llvm::enumerate(bucketLayout(graph, 1)))
      for (const BucketMember &member : bucket.members)
        if (const Parameter &p = graph.parameters[member.parameter]; p.value)
          places_[p.value] = {int64_t(i), member.offset, member.offset + p.type.numElements()};
    for (Op &op : graph.ops())
      position_[&op] = position_.size();
  }

  void run() {
    llvm::MapVector<Value *, llvm::SmallVector<Op *, 4>> groups; // by what is multiplied
    for (Op &op : graph_.ops())
      if (isCandidate(op))
        groups[op.operand(0)].push_back(&op);
    for (auto &[x, products] : groups) {
      llvm::stable_sort(products, [&](Op *a, Op *b) { return weight(*a) < weight(*b); });
      llvm::ArrayRef<Op *> rest = products;
      while (!rest.empty()) {
        size_t n = 1;
        while (n < rest.size() && follows(*rest[n - 1], *rest[n]))
          ++n;
        if (n > 1)
          merge(rest.take_front(n));
        rest = rest.drop_front(n);
      }
    }
  }

private:
  Place weight(const Op &product) const { return places_.lookup(product.operand(1)); }

  /// x times a weight [out, in], whose rows lie one behind another.
  bool isCandidate(const Op &op) const {
    return op.is(kMatMul) && !op.attrs.getInt("transpose_a", 0) && op.attrs.getInt("transpose_b", 0) && op.operand(0) &&
           op.operand(1)->type().rank() == 2 && places_.count(op.operand(1)) && !op.operand(2) &&
           (!op.operand(3) || places_.count(op.operand(3)));
  }

  bool follows(const Op &a, const Op &b) const {
    const Value *biasA = a.operand(3), *biasB = b.operand(3);
    return a.attrs == b.attrs && weight(a).precedes(weight(b)) && bool(biasA) == bool(biasB) &&
           (!biasA || places_.lookup(biasA).precedes(places_.lookup(biasB)));
  }

  void merge(llvm::ArrayRef<Op *> products) {
    Op *first = *llvm::min_element(products, [&](Op *a, Op *b) { return position_.lookup(a) < position_.lookup(b); });
    Builder b(graph_, first);
    b.stampLike(*products.front());
    auto join = [&](unsigned operand) -> Value * {
      llvm::SmallVector<Value *, 3> parts;
      for (Op *product : products) {
        Value *v = product->operand(operand);
        if (!v)
          return nullptr;
        if (position_.lookup(v->op()) > position_.lookup(first))
          graph_.moveBefore(v->op(), first);
        parts.push_back(v);
      }
      return b.make(kJoin, parts);
    };
    Value *weights = join(1), *bias = join(3);
    Value *all = b.make(kMatMul, {products[0]->operand(0), weights, nullptr, bias}, products[0]->attrs);
    all->setBatchMajor(products[0]->result()->batchMajor());
    Ints starts(all->type().rank(), 0);
    for (Op *product : products) {
      b.stampLike(*product);
      Value *old = product->result();
      Value *part = b.slice(all, starts, old->type().dims);
      part->setBatchMajor(old->batchMajor());
      starts.back() += old->type().dim(-1);
      std::string name = old->name().str();
      graph_.replaceAllUses(old, part);
      graph_.rename(old, "gone");
      graph_.rename(part, name);
    }
    for (Op *product : products)
      graph_.erase(product);
  }

  Graph &graph_;
  llvm::DenseMap<const Value *, Place> places_;
  llvm::DenseMap<const Op *, unsigned> position_;
};

} // namespace

llvm::Error mergeProducts(Graph &graph, const CompileOptions &) {
  if (llvm::Error error = requireBuckets(graph))
    return error;
  Merger(graph).run();
  return llvm::Error::success();
}

} // namespace shardc
