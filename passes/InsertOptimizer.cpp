// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Error.h"
#include "ir/graph/Builder.h"
#include "passes/Passes.h"
#include "passes/precision/LossScale.h"
#include "passes/zero/State.h"

namespace shardc {

using zero::Role;

namespace {

/// The optimizer's op and the state arrays that a bucket needs.
std::pair<const OpDef *, llvm::ArrayRef<Role>> optimizerOp(Optimizer optimizer) {
  static constexpr Role kStates[] = {Role::State0, Role::State1};
  switch (optimizer) {
  case Optimizer::AdamW: return {&kAdamW, kStates};
  case Optimizer::Adam: return {&kAdam, kStates};
  case Optimizer::Sgd: return {&kSgd, llvm::ArrayRef(kStates, 1)};
  }
  llvm_unreachable("optimizer");
}

class Update {
public:
  Update(Graph &graph, const CompileOptions &options)
      : graph_(graph), options_(options), buckets_(bucketLayout(graph, options.ranks)), b_(graph), gradients_(buckets_.size()) {
    b_.phase = Phase::Update;
  }

  void run() {
    Value *scalars = b_.make(kScalars, {});
    Value *scale = gradScale(scalars);
    auto [def, states] = optimizerOp(options_.optimizer);
    for (auto [i, bucket] : llvm::enumerate(buckets_))
      if (bucket.trainable)
        update(bucket, i, *def, states, scale, scalars);
    stamp("");
  }

private:
  /// The factor of all gradients: of the norm over all shards. With loss scaling the optimizers read other
  /// scalars from then on. Buckets are visited in the order of their first use in the next step.
  Value *gradScale(Value *&scalars) {
    llvm::SmallVector<Value *> gradients;
    for (auto [i, bucket] : llvm::enumerate(buckets_))
      if (bucket.trainable) {
        stamp(bucket.name);
        gradients.push_back(gradients_[i] = read(bucket, i, Role::Gradient).slice);
      }
    stamp("");
    Value *squares = b_.make(kSumSquares, gradients);
    if (options_.stage() >= 1) // each rank knows its slices only
      squares = zero::collective(b_, kAllReduceStart, {squares}, options_, "squares");
    Value *loss = zero::readState(b_, Role::Loss, Type(wideType(buckets_[0].dtype), {2}));
    llvm::SmallVector<Value *> operands{b_.reshape(b_.slice(loss, {zero::kLossCount}, {1}), {}), scalars};
    Attrs attrs;
    bool scaled = precision::scalesLoss(options_);
    if (scaled) {
      operands.push_back(zero::readState(b_, Role::LossScale, zero::lossScaleType()));
      attrs = {{"initial", precision::kInitialLossScale}, {"unit", precision::lossUnit(graph_)}};
    }
    operands.push_back(squares);
    Op *scale = b_.make(scaled ? kLossScale : kGradScale, operands, std::move(attrs))->op();
    for (auto [i, name] : llvm::enumerate(scale->def().results.take_front(scaled ? 4 : 2)))
      graph_.setOutput(name, scale->result(i));
    if (scaled)
      scalars = scale->result(4);
    return scale->result(1);
  }

  void update(const Bucket &bucket, int64_t index, const OpDef &def, llvm::ArrayRef<Role> states, Value *scale, Value *scalars) {
    stamp(bucket.name);
    bool master = zero::hasMaster(bucket);
    State trained = read(bucket, index, master ? Role::Master : Role::Parameter);
    llvm::SmallVector<Value *> operands{trained.slice, gradients_[index]};
    for (Role role : states)
      operands.push_back(read(bucket, index, role).slice);
    operands.append({scale, scalars});
    Attrs attrs{{"decay_end", bucket.decayEnd}};
    if (options_.stage() >= 1)
      attrs.set("ranks", int64_t(options_.ranks));
    const bool rounds = options_.stage() == 0 && master;
    if (rounds)
      attrs.set("rounded", toString(bucket.dtype).str());
    Value *updated = b_.make(def, operands, std::move(attrs));
    if (options_.stage() == 1 || options_.stage() == 2) {
      Value *whole = master ? read(bucket, index, Role::Parameter).stored : trained.stored;
      zero::collective(b_, kAllGatherStart, {updated, whole}, options_, bucket.name + ".updated", zero::gatherAttrs(bucket));
    }
    if (rounds) {
      Op &op = *updated->op();
      graph_.addOutput(zero::stateName(Role::Parameter, index), op.result(op.numResults() - 1));
    }
  }

  /// What a rank stores, and the part of it that this rank updates: all at stage 0, else its slice.
  struct State {
    Value *stored, *slice;
  };
  State read(const Bucket &bucket, int64_t index, Role role) {
    Value *stored = zero::readState(b_, role, zero::stateType(bucket, role, options_), index);
    bool cut = options_.stage() >= 1 && !zero::isSliced(role, options_.stage());
    return {stored, cut ? b_.make(kRankSlice, {stored}, {{"ranks", int64_t(options_.ranks)}}) : stored};
  }

  void stamp(llvm::StringRef bucket) { b_.layer = b_.place = bucket.str(); }

  Graph &graph_;
  const CompileOptions &options_;
  Buckets buckets_;
  Builder b_;
  std::vector<Value *> gradients_; ///< by bucket: of this rank's slice
};

} // namespace

llvm::Error insertOptimizer(Graph &graph, const CompileOptions &options) {
  if (llvm::Error error = requireBuckets(graph))
    return error;
  if (llvm::none_of(graph.parameters, [](const Parameter &p) { return p.trainable; }))
    return userError("nothing to train: got " + llvm::Twine(graph.parameters.size()) + " parameters, none of them trained");
  Update(graph, options).run();
  graph.level = Level::Sharded;
  graph.attrs.set("optimizer", toString(options.optimizer).str());
  return llvm::Error::success();
}

} // namespace shardc
