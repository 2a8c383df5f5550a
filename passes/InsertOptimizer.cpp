// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/Builder.h"
#include "ir/plan/Scalars.h"
#include "passes/Buckets.h"
#include "passes/Passes.h"

namespace shardc {

static Value *bucketValue(Builder &b, const Bucket &bucket, unsigned index, llvm::StringRef role) {
  std::string name = ("bucket." + bucket.name + "." + role).str();
  Attrs attrs{{"name", name}, {kBucketAttr, int64_t(index)}, {kRoleAttr, role.str()}};
  Op *op = b.graph().create(kInput, {}, std::move(attrs), {Type(bucket.dtype, {bucket.elements})}, nullptr, name);
  op->phase = b.phase;
  op->layer = b.layer;
  op->place = b.place;
  return op->result();
}

/// The optimizer's op and how many state arrays a bucket needs.
static std::pair<const OpDef *, unsigned> optimizerOp(Optimizer optimizer) {
  switch (optimizer) {
  case Optimizer::AdamW: return {&kAdamW, 2};
  case Optimizer::Adam: return {&kAdam, 2};
  case Optimizer::Sgd: return {&kSgd, 1};
  }
  llvm_unreachable("optimizer");
}

llvm::Error insertOptimizer(Graph &graph, const CompileOptions &options) {
  assignBuckets(graph);
  Buckets buckets = bucketLayout(graph, options.ranks);
  Builder b(graph);
  b.phase = Phase::Update;
  Value *scalars = b.make(kScalars, {});
  llvm::SmallVector<Value *> gradients(buckets.size()), scaleOperands{graph.output("loss_count"), scalars};
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    if (!bucket.trainable)
      continue;
    b.layer = b.place = bucket.name;
    gradients[i] = bucketValue(b, bucket, i, kRoleGradient);
    scaleOperands.push_back(b.make(kSumSquares, {gradients[i]}));
  }
  b.layer = b.place = "";
  Op *scale = b.make(kGradScale, scaleOperands)->op();
  graph.setOutput("grad_norm", scale->result(0));
  graph.setOutput("grad_scale", scale->result(1));

  auto [def, states] = optimizerOp(options.optimizer);
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    if (!bucket.trainable)
      continue;
    b.layer = b.place = bucket.name;
    llvm::SmallVector<Value *> operands{bucketValue(b, bucket, i, kRoleParameter), gradients[i]};
    for (unsigned s = 0; s < states; ++s)
      operands.push_back(bucketValue(b, bucket, i, kRoleState[s]));
    operands.append({scale->result(1), scalars});
    b.make(*def, operands, {{"decay_end", bucket.decayEnd}});
  }
  graph.level = Level::Sharded;
  graph.attrs.set("optimizer", toString(options.optimizer).str());
  return llvm::Error::success();
}

} // namespace shardc
