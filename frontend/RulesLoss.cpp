// SPDX-License-Identifier: Apache-2.0
// Loss nodes. A mean or sum without class weights is one cross_entropy op; other forms are taken
// apart.
#include "frontend/Loss.h"
#include "frontend/NodeContext.h"
#include "frontend/TorchMetadata.h"

namespace shardc {

Value *classRows(Emitter &b, Value *scores) {
  if (!scores)
    return scores;
  const Dims dims = scores->type().dims;
  Ints perm{0};
  for (size_t i = 2; i < dims.size(); ++i)
    perm.push_back(i);
  perm.push_back(1);
  int64_t classes = dims[1], rows = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    rows *= i == 1 ? 1 : dims[i];
  return b.reshape(b.transpose(scores, perm), {rows, classes});
}

LossParts crossEntropy(Emitter &b, Value *scores, Value *labels, int64_t ignoreIndex) {
  Value *rows = classRows(b, scores);
  if (!rows || !labels)
    return {};
  Value *flat = b.cast(b.reshape(labels, {rows->type().dims[0]}), DType::I64);
  Op *op = b.emitOp(kCrossEntropy, {rows, flat}, {{"ignore_index", ignoreIndex}});
  if (!op)
    return {};
  return {op->result(0), op->result(1), op->result(2)};
}

namespace {

/// The operand of a log_softmax over dim 1, where `scores` is one.
Value *beforeLogSoftmax(Value *scores) {
  Op *op = scores->op();
  int64_t rank = scores->type().rank();
  if (rank == 2 && op->is(kLogSoftmax))
    return op->operand(0);
  if (rank != 3 || !op->is(kTranspose) || op->attrs.getInts("perm") != Ints{0, 2, 1})
    return nullptr;
  op = op->operand(0)->op();
  if (!op->is(kLogSoftmax) || !op->operand(0)->op()->is(kTranspose) ||
      op->operand(0)->op()->attrs.getInts("perm") != Ints{0, 2, 1})
    return nullptr;
  return op->operand(0)->op()->operand(0);
}

class LossNode {
public:
  LossNode(NodeContext &n, bool logarithms) : n_(n), b_(n.b), logarithms_(logarithms) {}
  void import();

private:
  bool check();
  void whole(Value *scores);
  void piecewise();
  Value *sumAll(Value *x) { return b_.reduce(kReduceSum, x, {0}, false); }

  NodeContext &n_;
  Emitter &b_;
  bool logarithms_; ///< the scores are logarithms of probabilities already
  std::string reduction_;
  int64_t ignore_ = -100;
};

bool LossNode::check() {
  const Type &scores = n_.type(0), &labels = n_.type(1);
  reduction_ = n_.stringAttr("reduction", "mean");
  ignore_ = n_.intAttr("ignore_index", -100);
  Dims wanted = scores.dims;
  if (wanted.size() >= 2)
    wanted.erase(wanted.begin() + 1);
  if (scores.rank() < 2 || labels.dims != wanted || labels.isFloat()) {
    b_.fail("operands: got scores " + toString(scores) + " and labels " + toString(labels) +
            ", wanted labels with the dims of the scores without dim 1");
    return false;
  }
  if (reduction_ != "none" && reduction_ != "sum" && reduction_ != "mean") {
    b_.fail("reduction: got '" + reduction_ + "', wanted none, sum or mean");
    return false;
  }
  if (n_.in(2) && n_.type(2) != Type(scores.dtype, {scores.dims[1]})) {
    b_.fail("weights: got " + toString(n_.type(2)) + ", wanted one for each of " +
            llvm::Twine(scores.dims[1]) + " classes");
    return false;
  }
  if (llvm::StringRef smoothing = labelSmoothing(n_.proto); !smoothing.empty())
    b_.fail("label_smoothing: got " + smoothing + " in PyTorch, but a loss without it in the file: the exporter drops it",
            "write it out: (1 - p) * cross_entropy(y, t) - p * log_softmax(y, -1).mean()");
  return !n_.failed();
}

// mean = sum / count; of no rows at all it is 0.
void LossNode::whole(Value *scores) {
  LossParts parts = crossEntropy(b_, scores, n_.in(1), ignore_);
  if (!parts.sum || reduction_ == "sum")
    return n_.set(0, parts.sum);
  Value *one = b_.scalar(parts.count->type().dtype, 1);
  Value *mean = b_.emit(kDiv, {parts.sum, b_.emit(kMax, {parts.count, one})});
  n_.set(0, mean);
  if (mean)
    n_.services.notes.means[mean] = {parts.sum, parts.count, parts.correct};
}

void LossNode::piecewise() {
  DType dtype = n_.type(0).dtype;
  Value *rows = classRows(b_, n_.in(0));
  Value *logs = logarithms_ ? rows : b_.emit(kLogSoftmax, {rows});
  if (!logs)
    return;
  int64_t count = logs->type().dims[0];
  Value *labels = b_.cast(b_.reshape(n_.in(1), {count}), DType::I64);
  Value *ignored = b_.emit(kEqual, {labels, b_.integer(ignore_)});
  Value *safe = b_.where(ignored, b_.integer(0), labels);
  Value *picked = b_.reshape(
      b_.emit(kGatherElements, {logs, b_.reshape(safe, {count, 1})}, {{"axis", int64_t(1)}}),
      {count});
  Value *zero = b_.scalar(dtype, 0), *one = b_.scalar(dtype, 1);
  Value *weight = n_.in(2) ? b_.emit(kGather, {n_.in(2), safe}, {{"axis", int64_t(0)}}) : one;
  weight = b_.where(ignored, zero, weight);
  // Chosen, not multiplied by 0: the logarithm of an ignored row may be infinite.
  Value *losses = b_.where(ignored, zero, b_.emit(kNeg, {b_.emit(kMul, {picked, weight})}));
  if (reduction_ == "none") {
    n_.set(0, b_.reshape(losses, n_.type(1).dims));
  } else {
    Value *sum = sumAll(losses);
    n_.set(0, sum);
    if (reduction_ == "mean") {
      Value *total = sumAll(weight);
      Value *mean = b_.emit(kDiv, {sum, total});
      n_.set(0, mean);
      if (mean)
        n_.services.notes.means[mean] = {sum, total, nullptr};
    }
  }
  if (!n_.wants(1))
    return;
  Dims last = n_.type(0).dims;
  Ints perm{0, int64_t(last.size()) - 1};
  for (size_t i = 1; i + 1 < last.size(); ++i)
    perm.push_back(i);
  last.erase(last.begin() + 1);
  last.push_back(n_.type(0).dims[1]);
  n_.set(1, b_.transpose(b_.reshape(logs, last), perm));
}

void LossNode::import() {
  if (!check())
    return;
  Value *scores = logarithms_ ? beforeLogSoftmax(n_.in(0)) : n_.in(0);
  if (scores && !n_.in(2) && reduction_ != "none" && !n_.wants(1))
    return whole(scores);
  piecewise();
}

void softmaxCrossEntropy(NodeContext &n) { LossNode(n, false).import(); }
void negativeLogLikelihood(NodeContext &n) { LossNode(n, true).import(); }

constexpr NodeRule kRules[] = {
    {"SoftmaxCrossEntropyLoss", 2, 3, softmaxCrossEntropy},
    {"NegativeLogLikelihoodLoss", 2, 3, negativeLogLikelihood},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kLossRules = kRules;

} // namespace shardc
