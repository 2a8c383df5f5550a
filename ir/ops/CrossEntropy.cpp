// SPDX-License-Identifier: Apache-2.0
// Cross entropy of rows of logits against labels, as (sum, count): rows whose label is
// `ignore_index` count for nothing. `correct` is the number of kept rows whose largest logit (the
// first of equal ones) is the label's; lse is each row's logarithm of the sum of exponentials.
#include "ir/base/Error.h"
#include "ir/base/Workspace.h"
#include "ir/graph/Builder.h"
#include "ir/ops/Infer.h"
#include "ir/ops/Reference.h"
#include <cmath>

namespace shardc {
namespace {

void checkLogits(OpCheck &check, unsigned logits) {
  check.isFloat(logits);
  check.hasRank(logits, 2);
  check.isType(logits + 1, DType::I64);
  check.integer("ignore_index");
  if (check.failed())
    return;
  check.hasDims(logits + 1, {check.in(logits).dims[0]});
  if (check.in(logits).dims[1] == 0)
    check.fail("operand logits: got no classes (" + formatDims(check.in(logits).dims) +
               "), wanted at least one");
}

llvm::Expected<Types> infer(const Op &op) {
  OpCheck check(op);
  checkLogits(check, 0);
  if (check.failed())
    return check.error();
  DType dtype = wideType(check.in(0).dtype);
  Type scalar(dtype, {});
  return check.done({scalar, scalar, scalar, Type(dtype, {check.in(0).dims[0]})});
}

// Only the sum has a gradient: the count and the hits are steps.
void gradient(GradContext &g) {
  if (!g.dOut(0))
    return;
  g.setGrad(0, g.make(kCrossEntropyGrad, {g.dOut(0), g.in(0), g.in(1), g.out(3)},
                      {{"ignore_index", g.attrs().getInt("ignore_index")}}));
}

Cost cost(const Op &op) {
  const Type &logits = op.operand(0)->type();
  return {4.0 * double(logits.numElements()), double(logits.numBytes())};
}

llvm::Error labelError(const Tensor &labels, int64_t row, int64_t classes) {
  return userError("label out of range: got " + llvm::Twine(labels.asInt(row)) + " in row " +
                   llvm::Twine(row) + ", wanted one in [0, " + llvm::Twine(classes) +
                   ") or the ignore index");
}

llvm::Expected<Tensors> evaluate(const Op &op, TensorArgs in) {
  std::vector<double> logits = toDoubles(*in[0]);
  int64_t rows = in[0]->dims()[0], classes = in[0]->dims()[1];
  double sum = 0, count = 0, correct = 0;
  std::vector<double> lse(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const double *x = &logits[r * classes], *top = std::max_element(x, x + classes);
    double total = 0;
    for (int64_t i = 0; i < classes; ++i)
      total += std::exp(x[i] - *top);
    lse[r] = *top + std::log(total);
    int64_t label = in[1]->asInt(r);
    if (label == op.attrs.getInt("ignore_index"))
      continue;
    if (label < 0 || label >= classes)
      return labelError(*in[1], r, classes);
    sum += lse[r] - x[label];
    count += 1;
    correct += top - x == label;
  }
  DType dtype = wideType(in[0]->dtype());
  return Tensors{Tensor::splat(dtype, {}, sum), Tensor::splat(dtype, {}, count),
                 Tensor::splat(dtype, {}, correct), fromDoubles(dtype, {rows}, lse)};
}

llvm::Expected<Types> inferGrad(const Op &op) {
  OpCheck check(op);
  checkLogits(check, 1);
  if (check.failed())
    return check.error();
  check.hasDims(0, {});
  check.hasDims(3, {check.in(1).dims[0]});
  check.isStatisticOf(0, 1);
  check.isStatisticOf(3, 1);
  return check.done({check.in(1)});
}

// dlogits = dsum (softmax - onehot(label)); rows without a label get 0.
llvm::Expected<Tensors> evaluateGrad(const Op &op, TensorArgs in) {
  double dsum = in[0]->asDouble(0);
  std::vector<double> x = toDoubles(*in[1]), lse = toDoubles(*in[3]);
  int64_t rows = in[1]->dims()[0], classes = in[1]->dims()[1];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t label = in[2]->asInt(r);
    bool kept = label != op.attrs.getInt("ignore_index");
    if (kept && (label < 0 || label >= classes))
      return labelError(*in[2], r, classes);
    for (int64_t i = 0; i < classes; ++i) {
      double &value = x[r * classes + i];
      value = kept ? dsum * (std::exp(value - lse[r]) - double(i == label)) : 0;
    }
  }
  return Tensors{fromDoubles(in[1]->dtype(), in[1]->dims(), x)};
}

Cost gradCost(const Op &op) {
  const Type &logits = op.operand(1)->type();
  return {3.0 * double(logits.numElements()), 2.0 * double(logits.numBytes())};
}

constexpr const char *kOperands[] = {"logits", "labels"};
constexpr const char *kResults[] = {"sum", "count", "correct", "lse"};
constexpr const char *kGradOperands[] = {"dsum", "logits", "labels", "lse"};
constexpr const char *kGradResults[] = {"dlogits"};
constexpr InPlace kOverLogits[] = {{1, 0}};

} // namespace

constinit const OpDef kCrossEntropy = {.mnemonic = "cross_entropy",
                                       .operands = kOperands,
                                       .results = kResults,
                                       .infer = infer,
                                       .gradient = gradient,
                                       .evaluate = evaluate,
                                       .cost = cost,
                                       .workspace = [](const Op &op) {
                                         return lossWorkspace(op.operand(0)->type().dim(0));
                                       }};

constinit const OpDef kCrossEntropyGrad = {.mnemonic = "cross_entropy_grad",
                                           .operands = kGradOperands,
                                           .results = kGradResults,
                                           .infer = inferGrad,
                                           .notDifferentiable = kIsGradient,
                                           .evaluate = evaluateGrad,
                                           .cost = gradCost,
                                           .inPlace = kOverLogits};

} // namespace shardc
