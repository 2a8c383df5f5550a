// SPDX-License-Identifier: Apache-2.0
// Constants, nodes that do nothing, dropout, and branches whose condition is known.
#include "frontend/NodeContext.h"
#include "frontend/TensorValue.h"
#include "ir/graph/Fold.h"

namespace shardc {
namespace {

void identity(NodeContext &n) { n.set(0, n.in(0)); }

void constant(NodeContext &n) {
  auto value = constantValue(n.services.model, n.proto);
  if (!value)
    return n.b.fail(llvm::toString(value.takeError()));
  n.set(0, n.b.constant(std::move(*value)));
}

void dropout(NodeContext &n) {
  double ratio = 0.5;
  bool training = false;
  if (n.in(1))
    ratio = n.scalarIn(1, "the ratio").value_or(0);
  if (n.in(2))
    training = n.scalarIn(2, "training_mode").value_or(0) != 0;
  if (n.failed())
    return;
  if (!(ratio >= 0 && ratio < 1))
    return n.b.fail("ratio: got " + llvm::Twine(std::to_string(ratio)) + ", wanted one in [0, 1)");
  if (training)
    ++n.services.notes.activeDropouts;
  else if (ratio > 0)
    n.services.notes.idleDropouts.push_back(n.b.place().str());
  if (n.wants(1)) {
    if (training && ratio > 0)
      return n.unsupported("the mask output of an active dropout");
    n.set(1, n.b.splat(Tensor::splat(DType::Bool, {}, 1), n.type(0).dims));
  }
  // One of ratio 0 stays too, for whoever sets all ratios; every node has a number, so that these
  // do not shift.
  int64_t id = n.services.notes.nextDropoutId++;
  n.set(0, training ? n.b.emit(kDropout, {n.in(0)}, {{"p", ratio}, {"id", id}, {"batch_major", int64_t(0)}})
                    : n.in(0));
}

void branch(NodeContext &n) {
  const Tensor *condition = constantOf(n.in(0));
  if (!condition) {
    bool merged = llvm::StringRef(n.proto.input(0)).contains("use_cache_branch");
    return n.unsupported(
        merged ? "a merged decoder for inference (decoder_model_merged) cannot be trained: export the "
                 "model in train mode with use_cache=False"
               : "the condition depends on data; only one that shapes decide is folded");
  }
  if (condition->numElements() != 1)
    return n.b.fail("condition: got " + toString(n.type(0)) + ", wanted one truth value");
  const onnx::AttributeProto *chosen = n.find(condition->asInt(0) ? "then_branch" : "else_branch");
  if (!chosen || !chosen->has_g())
    return n.b.fail("a branch is missing");
  auto values = n.services.inlineBranch(chosen->g());
  if (n.failed())
    return;
  if (int(values.size()) != n.proto.output_size())
    return n.b.fail("outputs: got " + llvm::Twine(values.size()) + " in the branch, wanted " +
                    llvm::Twine(n.proto.output_size()));
  ++n.services.notes.foldedIfs;
  for (unsigned i = 0; i < values.size(); ++i)
    n.set(i, values[i]);
}

void loop(NodeContext &n) {
  n.unsupported("loops are not unrolled: export the model without generation or scripting");
}

void nonZero(NodeContext &n) {
  n.unsupported("the size of its result depends on data: mask instead of selecting, or export the "
                "logits and use "
                "--loss cross_entropy");
}

void random(NodeContext &n) {
  n.unsupported("of random ops only Dropout is built: export with the rate of stochastic depth "
                "(drop_path_rate, layerdrop) at 0");
}

constexpr NodeRule kRules[] = {
    {"Identity", 1, 1, identity},   {"Constant", 0, 0, constant},        {"Dropout", 1, 3, dropout},
    {"If", 1, 1, branch},           {"Loop", 0, kAnyNumber, loop},       {"Scan", 0, kAnyNumber, loop},
    {"NonZero", 1, 1, nonZero},     {"Bernoulli", 1, 1, random},         {"RandomUniform", 0, 0, random},
    {"RandomNormal", 0, 0, random}, {"RandomUniformLike", 1, 1, random}, {"RandomNormalLike", 1, 1, random},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kControlRules = kRules;

} // namespace shardc
