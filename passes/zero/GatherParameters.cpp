// SPDX-License-Identifier: Apache-2.0
// Stage 3: parameters are gathered before each run of uses. A run of a bucket's uses ends where a bucket of another layer is used. The
// bucket of wide parameters is gathered once: it is small, and all layers use it.
#include "ir/graph/Builder.h"
#include "passes/zero/State.h"

namespace shardc::zero {
namespace {

class Gathers {
public:
  Gathers(Graph &graph, const Buckets &buckets, const CompileOptions &options)
      : graph_(graph), buckets_(buckets), options_(options), slices_(buckets.size()) {
    for (auto [i, bucket] : llvm::enumerate(buckets))
      for (const BucketMember &member : bucket.members)
        if (Value *value = graph.parameters[member.parameter].value)
          members_[value] = {int64_t(i), member.offset};
  }

  void run() {
    for (auto it = graph_.ops().begin(); it != graph_.ops().end();) {
      Op &op = *it++;
      if (op.def().view || op.is(kParam))
        continue;
      for (unsigned i = 0; i < op.numOperands(); ++i)
        if (Value *v = op.operand(i))
          if (auto found = members_.find(rootOf(v)); found != members_.end())
            op.setOperand(i, gathered(v, found->second.first, op));
    }
  }

private:
  static Value *rootOf(Value *v) {
    while (v->op()->def().view)
      v = v->op()->operand(0);
    return v;
  }

  /// `v`, a view of a parameter, as a view of the bucket's gathered memory.
  Value *gathered(Value *v, int64_t bucket, Op &user) {
    const bool wide = buckets_[bucket].name == kWideBucket;
    if (!wide && buckets_[bucket].name != layer_) {
      layer_ = buckets_[bucket].name;
      wholes_.clear();
      views_.clear();
    }
    if (Value *&whole = wide ? wide_[bucket] : wholes_[bucket]; !whole) {
      Builder b(graph_, &user);
      b.phase = user.phase;
      b.layer = b.place = buckets_[bucket].name;
      whole = collective(b, kAllGatherStart, {slice(bucket), nullptr}, options_, b.layer + ".gathered",
                         gatherAttrs(buckets_[bucket]));
    }
    return viewOf(v, user);
  }

  Value *slice(int64_t bucket) {
    if (!slices_[bucket]) {
      Builder b(graph_, &graph_.ops().front());
      b.layer = b.place = buckets_[bucket].name;
      Role role = hasMaster(buckets_[bucket]) ? Role::Master : Role::Parameter;
      slices_[bucket] = readState(b, role, stateType(buckets_[bucket], role, options_), bucket);
    }
    return slices_[bucket];
  }

  Value *viewOf(Value *v, Op &user) {
    if (Value *view = views_.lookup(v))
      return view;
    Builder b(graph_, &user);
    b.stampLike(user);
    if (auto found = members_.find(v); found != members_.end()) {
      auto [bucket, offset] = found->second;
      Value *whole = wide_.contains(bucket) ? wide_[bucket] : wholes_[bucket];
      return views_[v] = b.reshape(b.slice(whole, {offset}, {v->type().numElements()}), v->type().dims);
    }
    Op *op = v->op();
    if (op->is(kJoin)) { // of neighbours
      auto [bucket, offset] = members_.lookup(op->operand(0));
      return views_[v] = b.reshape(b.slice(wholes_[bucket], {offset}, {v->type().numElements()}), v->type().dims);
    }
    Value *base = viewOf(op->operand(0), user);
    return views_[v] = b.make(op->def(), {base}, op->attrs);
  }

  Graph &graph_;
  const Buckets &buckets_;
  const CompileOptions &options_;
  std::vector<Value *> slices_; ///< by bucket
  llvm::DenseMap<Value *, std::pair<int64_t, int64_t>> members_; ///< parameter's value -> bucket, offset
  llvm::DenseMap<int64_t, Value *> wide_; ///< the gathered bucket of wide parameters
  // Of the run: its layer, gathered buckets, and views of parameters as views of these.
  llvm::StringRef layer_;
  llvm::DenseMap<int64_t, Value *> wholes_;
  llvm::DenseMap<Value *, Value *> views_;
};

} // namespace

void gatherParameters(Graph &graph, const Buckets &buckets, const CompileOptions &options) {
  Gathers(graph, buckets, options).run();
}

} // namespace shardc::zero
