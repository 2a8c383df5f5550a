// SPDX-License-Identifier: Apache-2.0
#include "frontend/BatchMajor.h"
#include "ir/ops/Infer.h"

namespace shardc {
namespace {

constexpr int64_t kNone = -1;

/// Tracks the dim that runs over the batch, also while it is not dim 0, and follows it through each
/// op.
class Tracker {
public:
  Tracker(Graph &graph, int64_t batch) : graph_(graph), batch_(batch) {}
  void run();

private:
  int64_t axisOf(const Value *value) const {
    auto it = value ? axes_.find(value) : axes_.end();
    return it == axes_.end() ? kNone : it->second;
  }
  int64_t resultAxis(const Op &op) const;
  int64_t broadcast(const Op &op) const;
  int64_t reshaped(const Op &op) const;
  int64_t gathered(const Op &op) const;
  int64_t scattered(const Op &op) const;
  int64_t reduced(const Op &op) const;
  int64_t product(const Op &op) const;

  Graph &graph_;
  int64_t batch_;
  llvm::DenseMap<const Value *, int64_t> axes_;
};

/// Dims are counted from the right; a dim of 1 that is stretched to the batch is not the batch.
int64_t Tracker::broadcast(const Op &op) const {
  const Dims &dims = op.result()->type().dims;
  for (const Value *operand : op.operands()) {
    int64_t axis = axisOf(operand);
    if (axis == kNone)
      continue;
    int64_t at = axis + int64_t(dims.size()) - operand->type().rank();
    if (at >= 0 && dims[at] == operand->type().dims[axis])
      return at;
  }
  return kNone;
}

/// The dim of the result that begins where the batch dim began and holds whole items.
int64_t Tracker::reshaped(const Op &op) const {
  int64_t axis = axisOf(op.operand(0));
  if (axis == kNone)
    return kNone;
  const Dims &from = op.operand(0)->type().dims, &to = op.result()->type().dims;
  int64_t before = numElements(llvm::ArrayRef(from).take_front(axis)), product = 1;
  for (size_t i = 0; i < to.size(); product *= to[i++])
    if (product == before && to[i] % batch_ == 0 && (to[i] > 1 || batch_ == 1))
      return i;
  return kNone;
}

int64_t Tracker::gathered(const Op &op) const {
  int64_t data = axisOf(op.operand(0)), indices = axisOf(op.operand(1));
  int64_t axis =
      op.is(kEmbedding) ? 0 : normalAxis(op.attrs.getInt("axis"), op.operand(0)->type().rank());
  if (data != kNone && data < axis)
    return data;
  if (data != kNone && data > axis)
    return data + op.operand(1)->type().rank() - 1;
  return data == kNone && indices != kNone ? axis + indices : kNone;
}

/// Scattered rows of the batch over data that has the batch in the same place, or is the same for
/// all.
int64_t Tracker::scattered(const Op &op) const {
  const Dims &dims = op.result()->type().dims;
  for (unsigned i : {0u, 2u}) {
    int64_t axis = axisOf(op.operand(i));
    if (axis != kNone && axis < int64_t(dims.size()) &&
        op.operand(i)->type().rank() == int64_t(dims.size()) &&
        op.operand(i)->type().dims[axis] == dims[axis])
      return axis;
  }
  return kNone;
}

int64_t Tracker::reduced(const Op &op) const {
  int64_t axis = axisOf(op.operand(0)), at = axis;
  if (axis == kNone)
    return kNone;
  for (int64_t reduced : op.attrs.getInts("axes")) {
    reduced = normalAxis(reduced, op.operand(0)->type().rank());
    if (reduced == axis)
      return kNone;
    at -= reduced < axis && !op.attrs.getInt("keep_dims");
  }
  return at;
}

int64_t Tracker::product(const Op &op) const {
  int64_t rank = op.result()->type().rank();
  for (unsigned i : {0u, 1u}) {
    int64_t axis = axisOf(op.operand(i)), own = op.operand(i)->type().rank();
    if (axis == kNone)
      continue;
    if (axis < own - 2)
      return axis + rank - own;
    bool transposed = op.attrs.getInt(i == 0 ? "transpose_a" : "transpose_b", 0);
    bool isRow = (axis == own - 2) != transposed; // of the operand as it is multiplied
    if (isRow == (i == 0))
      return i == 0 ? rank - 2 : rank - 1;
  }
  return kNone;
}

int64_t Tracker::resultAxis(const Op &op) const {
  if (op.def().scalar || op.is(kExpand))
    return broadcast(op);
  if (op.is(kReshape))
    return reshaped(op);
  if (op.is(kGather) || op.is(kEmbedding))
    return gathered(op);
  if (op.is(kScatterElements) || op.is(kScatterNd))
    return scattered(op);
  if (op.is(kReduceSum) || op.is(kReduceMax) || op.is(kReduceMin) || op.is(kReduceProd))
    return reduced(op);
  if (op.is(kMatMul))
    return product(op);

  int64_t axis = kNone, rank = op.result()->type().rank();
  for (const Value *operand : op.operands())
    if (axis == kNone)
      axis = axisOf(operand);
  if (axis == kNone)
    return kNone;
  if (op.is(kTranspose)) {
    const Ints &perm = op.attrs.getInts("perm");
    return llvm::find(perm, axis) - perm.begin();
  }
  if (op.is(kGatherNd)) // coordinates that walk over the batch in order cannot be told from others:
                        // by size
    return axis == 0 && rank > 0 && op.result()->type().dims[0] == op.operand(0)->type().dims[0]
               ? 0
               : kNone;
  if (op.is(kConcat) || op.is(kCumSum) || op.is(kGatherElements))
    return normalAxis(op.attrs.getInt("axis"), rank) == axis ? kNone : axis;
  if (op.is(kSlice) || op.is(kPad))
    return op.result()->type().dims[axis] == op.operand(0)->type().dims[axis] ? axis : kNone;
  if (op.is(kSoftmax) || op.is(kLogSoftmax))
    return axis == rank - 1 ? kNone : axis;
  if (op.is(kLayerNorm) || op.is(kRmsNorm))
    return axis < normalAxis(op.attrs.getInt("axis"), rank) ? axis : kNone;
  return kNone;
}

void Tracker::run() {
  for (Op &op : graph_.ops()) {
    if (op.is(kInput)) {
      if (op.result()->batchMajor())
        axes_[op.result()] = 0;
      continue;
    }
    if (op.numOperands() == 0)
      continue;
    int64_t axis = op.is(kCrossEntropy) ? kNone : resultAxis(op);
    if (axis != kNone)
      axes_[op.result()] = axis;
    op.result()->setBatchMajor(axis == 0);
    // Statistics of norms have a row for each row of the operand.
    if (axis != kNone && (op.is(kLayerNorm) || op.is(kRmsNorm)))
      for (unsigned i = 1; i < op.numResults(); ++i)
        op.result(i)->setBatchMajor(axis == 0);
    if (op.is(kCrossEntropy))
      op.result(3)->setBatchMajor(axisOf(op.operand(0)) == 0);
    if (op.is(kDropout))
      op.attrs.set("batch_major", int64_t(axis == 0));
  }
}

} // namespace

void markBatchMajor(Graph &graph, int64_t batch) { Tracker(graph, batch).run(); }

} // namespace shardc
