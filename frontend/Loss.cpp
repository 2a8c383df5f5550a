// SPDX-License-Identifier: Apache-2.0
#include "frontend/Loss.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "ir/graph/Fold.h"

namespace shardc {

static bool hasOutput(const OnnxModel &model, llvm::StringRef name) {
  return llvm::any_of(model.graph().output(), [&](auto &output) { return output.name() == name; });
}

static std::string outputList(const OnnxModel &model) {
  std::string list;
  for (auto &output : model.graph().output())
    list += (list.empty() ? "" : ", ") + quoted(output.name());
  return list;
}

llvm::Expected<LossChoice> chooseLoss(const OnnxModel &model, const ImportOptions &options) {
  using Kind = LossChoice::Kind;
  bool automatic = options.loss == "auto";
  if (options.loss == "none")
    return LossChoice{};
  if (automatic && hasOutput(model, "loss") && options.logits.empty())
    return LossChoice{Kind::InModel, "loss"};
  if (!automatic && options.loss != "cross_entropy" && options.loss != "mse") {
    if (!hasOutput(model, options.loss))
      return userError(
          "--loss: got " + quoted(options.loss) +
              ", wanted auto, cross_entropy, mse or an output of the model: " + outputList(model),
          "an output that is a scalar is a loss; for logits: --loss cross_entropy --logits NAME --labels NAME");
    return LossChoice{Kind::InModel, options.loss};
  }
  Kind kind = options.loss == "mse" ? Kind::MeanSquares : Kind::CrossEntropy;
  std::string logits = options.logits;
  if (!logits.empty() && !hasOutput(model, logits))
    return userError("--logits: got " + quoted(logits) +
                         ", wanted an output of the model: " + outputList(model),
                     "outputs have their ONNX names");
  if (logits.empty())
    logits = hasOutput(model, "logits") || model.graph().output_size() != 1
                 ? "logits"
                 : model.graph().output(0).name();
  if (!hasOutput(model, logits))
    return userError(model.path() + ": no loss: got outputs " + outputList(model) +
                         ", wanted one called 'loss' or 'logits'",
                     "name the logits: --loss cross_entropy --logits NAME --labels NAME");
  return LossChoice{kind, logits};
}

Value *shiftedLabels(Emitter &b, const ImportOptions &options, Value *labels) {
  const Type &type = labels->type();
  b.setPlace("shift_right");
  if (type.rank() != 2 || type.dtype != DType::I64) {
    b.fail("decoder_input_ids: got " + toString(type) + ", wanted i64 ids of 2 dims");
    return nullptr;
  }
  Value *start = b.expand(b.integer(options.shiftRight->start), {type.dims[0], 1});
  Value *known = b.where(b.emit(kEqual, {labels, b.integer(options.ignoreIndex)}),
                          b.integer(options.shiftRight->pad), labels);
  return b.concat({start, b.sliceAxis(known, 1, 0, type.dims[1] - 1)}, 1);
}

Value *makeInput(Emitter &b, llvm::StringRef name, const Type &type) {
  Op *op = b.graph().create(kInput, {}, {{"name", name.str()}}, {type}, nullptr, valueName(name));
  op->place = name.str();
  return op->result();
}

namespace {

/// value = sum / count, seen through what is linear: reshapes, signs, numbers, sums of means over
/// one count, or over counts of as many labels (start and end of an answer).
struct Mean {
  Value *sum, *count, *correct;
};

class MeanFinder {
public:
  MeanFinder(Emitter &b, ImportNotes &notes) : b_(b), notes_(notes) {}

  std::optional<Mean> find(Value *value, int depth = 0) {
    if (auto it = notes_.means.find(value); it != notes_.means.end())
      return Mean{it->second.sum, it->second.count, it->second.correct};
    Op *op = value->op();
    if (depth > 16 || value->type().numElements() != 1)
      return std::nullopt;
    if (op->is(kReshape))
      return find(op->operand(0), depth + 1);
    if (op->is(kNeg))
      return times(find(op->operand(0), depth + 1), kMul, b_.scalar(value->type().dtype, -1));
    if (op->is(kMul) || op->is(kDiv)) {
      for (unsigned i = 0; i < (op->is(kMul) ? 2u : 1u); ++i)
        if (constantOf(op->operand(1 - i)))
          return times(find(op->operand(i), depth + 1), op->def(),
                       b_.reshape(op->operand(1 - i), {}));
      return std::nullopt;
    }
    if (op->is(kAdd)) {
      auto a = find(op->operand(0), depth + 1), c = find(op->operand(1), depth + 1);
      if (a && c && a->count == c->count)
        return Mean{b_.emit(kAdd, {a->sum, c->sum}), a->count, nullptr};
      if (a && c && labelsOf(a->count) && labelsOf(a->count) == labelsOf(c->count))
        return both(*a, *c);
    }
    return std::nullopt;
  }

private:
  /// Labels that a count is of, the ignored ones included; 0 if it is something else.
  static int64_t labelsOf(Value *count) {
    if (count->op()->is(kMax)) // of a sum of such means
      return labelsOf(count->op()->operand(0));
    return count->op()->is(kCrossEntropy) ? count->op()->operand(1)->type().numElements() : 0;
  }
  /// Counts differ only where rows are ignored in one of the two.
  Mean both(const Mean &a, const Mean &c) {
    Value *one = b_.scalar(a.count->type().dtype, 1), *count = b_.emit(kMax, {a.count, c.count});
    auto mean = [&](const Mean &m) { return b_.emit(kDiv, {m.sum, b_.emit(kMax, {m.count, one})}); };
    notes_.notes.push_back("the loss is a sum of means over different labels: ranks and micro-steps change "
                           "nothing as long as each ignores as "
                           "many of the one as of the other");
    return {b_.emit(kMul, {b_.emit(kAdd, {mean(a), mean(c)}), count}), count, nullptr};
  }
  std::optional<Mean> times(std::optional<Mean> mean, const OpDef &def, Value *factor) {
    if (mean)
      mean->sum = b_.emit(def, {mean->sum, factor});
    return mean;
  }
  Emitter &b_;
  ImportNotes &notes_;
};

/// Of an added loss: the labels, checked if the model has them, made if not.
Value *labelsFor(Emitter &b, const ImportOptions &options, Value *labels, const Type &type,
                 bool batchMajor) {
  if (!labels) {
    labels = makeInput(b, options.labels, type);
    labels->setBatchMajor(batchMajor);
  } else if (labels->type() != type) {
    b.fail("labels " + quoted(options.labels) + ": got " + toString(labels->type()) + ", wanted " +
           toString(type) + " for these logits");
    return nullptr;
  }
  return labels;
}

LossParts addCrossEntropy(Emitter &b, const ImportOptions &options, Value *logits, Value *labels) {
  const Type &type = logits->type();
  if (!type.isFloat() || type.rank() < 2) {
    b.fail("logits: got " + toString(type) +
               ", wanted floats with classes in the last of 2 dims or more",
           "name the logits with --logits");
    return {};
  }
  Dims dims(type.dims.begin(), type.dims.end() - 1);
  labels = labelsFor(b, options, labels, Type(DType::I64, dims), true);
  int64_t classes = type.dim(-1), rows = numElements(dims);
  return labels ? crossEntropy(b, b.reshape(logits, {rows, classes}), labels, options.ignoreIndex)
                : LossParts{};
}

// sum((logits - labels)^2) over all elements
LossParts addMeanSquares(Emitter &b, const ImportOptions &options, Value *logits, Value *labels) {
  const Type &type = logits->type();
  if (!type.isFloat() || type.rank() < 1) {
    b.fail("logits: got " + toString(type) + ", wanted floats", "name the logits with --logits");
    return {};
  }
  // One number a row: labels come without that dim.
  Dims dims = type.dims;
  if (dims.size() > 1 && dims.back() == 1)
    dims.pop_back();
  labels = labelsFor(b, options, labels, Type(type.dtype, dims), true);
  if (!labels)
    return {};
  Ints axes;
  for (size_t i = 0; i < dims.size(); ++i)
    axes.push_back(i);
  Value *difference = b.emit(kSub, {b.reshape(logits, dims), labels});
  Value *sum = b.reduce(kReduceSum, b.emit(kMul, {difference, difference}), axes, false);
  return {sum, b.scalar(type.dtype, double(numElements(dims))), nullptr};
}

} // namespace

void attachLoss(Emitter &b, const LossChoice &choice, const ImportOptions &options, Value *value,
                Value *labels, ImportNotes &notes) {
  Graph &graph = b.graph();
  LossParts parts;
  int64_t divisible = 1;
  std::string kind = "model";
  b.setPlace("loss");
  switch (choice.kind) {
  case LossChoice::Kind::None:
    return;
  case LossChoice::Kind::InModel: {
    b.setPlace(choice.output);
    if (!value->type().isFloat() || value->type().numElements() != 1)
      return b.fail("the loss: got " + toString(value->type()) + ", wanted one float",
                    "export the mean loss, or let it be added: --loss cross_entropy --logits NAME "
                    "--labels NAME");
    if (auto mean = MeanFinder(b, notes).find(value)) {
      parts = {mean->sum, mean->count, mean->correct};
    } else {
      parts = {b.reshape(value, {}), b.scalar(value->type().dtype, 1), nullptr};
      divisible = 0;
      notes.notes.push_back(
          "loss " + quoted(choice.output) +
          " is not a mean that can be taken apart: one rank and one micro-step only");
    }
    break;
  }
  case LossChoice::Kind::CrossEntropy:
    kind = "cross_entropy";
    parts = addCrossEntropy(b, options, value, labels);
    break;
  case LossChoice::Kind::MeanSquares:
    kind = "mse";
    parts = addMeanSquares(b, options, value, labels);
    break;
  }
  if (b.failed())
    return;
  graph.addOutput("loss_sum", b.cast(b.reshape(parts.sum, {}), DType::F32));
  graph.addOutput("loss_count", b.cast(b.reshape(parts.count, {}), DType::F32));
  if (parts.correct)
    graph.addOutput("correct", b.cast(parts.correct, DType::F32));
  graph.attrs.set("loss", kind);
  graph.attrs.set("loss_divisible", divisible);
}

} // namespace shardc
