// SPDX-License-Identifier: Apache-2.0
// Nodes that reduce over axes: sums and their kin, softmax, norms, running sums.
#include "frontend/NodeContext.h"
#include "frontend/TorchMetadata.h"
#include <numeric>

namespace shardc {
namespace {

struct Reduction {
  Ints axes; ///< sorted; empty: nothing is reduced
  bool keepDims = true;
};

std::optional<Reduction> readReduction(NodeContext &n) {
  Reduction r;
  int64_t rank = n.type(0).rank();
  r.keepDims = n.intAttr("keepdims", 1);
  bool noop = n.intAttr("noop_with_empty_axes", 0);
  if (auto axes = n.axes(1))
    r.axes = n.axisList(*axes, rank);
  if (n.failed())
    return std::nullopt;
  if (r.axes.empty() && !noop)
    for (int64_t i = 0; i < rank; ++i)
      r.axes.push_back(i);
  return r;
}

int64_t countOf(NodeContext &n, const Reduction &r) {
  int64_t count = 1;
  for (int64_t axis : r.axes)
    count *= n.type(0).dims[axis];
  return count;
}

template <const OpDef &def> void plain(NodeContext &n) {
  auto r = readReduction(n);
  if (!r)
    return;
  bool truth = n.type(0).dtype == DType::Bool;
  Value *x = truth ? n.b.cast(n.in(0), DType::I32) : n.in(0);
  n.set(0, n.b.cast(n.b.reduce(def, x, r->axes, r->keepDims), n.type(0).dtype));
}

Value *sumOf(NodeContext &n, const Reduction &r, Value *x) {
  return n.b.reduce(kReduceSum, x, r.axes, r.keepDims);
}

void mean(NodeContext &n) {
  auto r = readReduction(n);
  if (!r)
    return;
  Value *sum = sumOf(n, *r, n.in(0)), *count = n.b.scalar(n.type(0).dtype, double(countOf(n, *r)));
  Value *value = r->axes.empty() ? sum : n.b.emit(kDiv, {sum, count});
  n.set(0, value);
  if (value && value->type().numElements() == 1 && value->type().isFloat() && !r->axes.empty())
    n.services.notes.means[value] = {sum, count, nullptr};
}

template <const OpDef &inner> void sumAfter(NodeContext &n) {
  if (auto r = readReduction(n))
    n.set(0, sumOf(n, *r, n.b.emit(inner, {n.in(0)})));
}

void sumSquare(NodeContext &n) {
  if (auto r = readReduction(n))
    n.set(0, sumOf(n, *r, n.b.emit(kMul, {n.in(0), n.in(0)})));
}

/// Of integers too: ONNX gives the operand's type.
Value *throughFloat(NodeContext &n, const OpDef &outer, Value *x) {
  DType dtype = n.type(0).dtype;
  return n.b.cast(n.b.emit(outer, {isFloat(dtype) ? x : n.b.cast(x, DType::F64)}), dtype);
}

void l2(NodeContext &n) {
  if (auto r = readReduction(n))
    n.set(0, throughFloat(n, kSqrt, sumOf(n, *r, n.b.emit(kMul, {n.in(0), n.in(0)}))));
}

void logSum(NodeContext &n) {
  if (auto r = readReduction(n))
    n.set(0, throughFloat(n, kLog, sumOf(n, *r, n.in(0))));
}

// m + log(sum(exp(x - m))), m the largest
void logSumExp(NodeContext &n) {
  auto r = readReduction(n);
  if (!r)
    return;
  Value *x = n.type(0).isFloat() ? n.in(0) : n.b.cast(n.in(0), DType::F64);
  Value *most = n.b.reduce(kReduceMax, x, r->axes, true);
  Value *sum = n.b.reduce(kReduceSum, n.b.emit(kExp, {n.b.emit(kSub, {x, most})}), r->axes, true);
  Value *y = n.b.emit(kAdd, {most, n.b.emit(kLog, {sum})});
  if (y && !r->keepDims) {
    Ints dims;
    for (int64_t i = 0; i < n.type(0).rank(); ++i)
      if (!llvm::is_contained(r->axes, i))
        dims.push_back(n.type(0).dims[i]);
    y = n.b.reshape(y, dims);
  }
  n.set(0, n.b.cast(y, n.type(0).dtype));
}

template <const OpDef &def> void softmax(NodeContext &n) {
  if (hadDropout(n.proto))
    n.services.notes.lostDropouts.push_back(n.b.place().str());
  int64_t axis = n.axis(n.intAttr("axis", -1), n.type(0).rank());
  if (!n.failed())
    n.set(0, n.b.softmax(def, n.in(0), axis));
}

/// Statistics have one element for each row; ONNX keeps the other dims as 1.
Value *keptDims(NodeContext &n, Value *statistic, int64_t axis) {
  Ints dims(n.type(0).dims);
  for (size_t i = axis; i < dims.size(); ++i)
    dims[i] = 1;
  return n.b.reshape(statistic, dims);
}

/// Scales and biases broadcast to the normalised dims.
Dims rowDims(NodeContext &n, int64_t axis) {
  return Dims(llvm::ArrayRef(n.type(0).dims).drop_front(axis));
}

void layerNorm(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", -1), n.type(0).rank());
  if (n.failed())
    return;
  Value *scale = n.b.expand(n.in(1), rowDims(n, axis)),
        *bias = n.b.expand(n.in(2), rowDims(n, axis));
  Op *op = n.b.emitOp(kLayerNorm, {n.in(0), scale, bias},
                      {{"axis", axis}, {"eps", n.floatAttr("epsilon", 1e-5f)}});
  if (!op)
    return;
  n.set(0, op->result(0));
  if (n.wants(1))
    n.set(1, keptDims(n, op->result(1), axis));
  if (n.wants(2))
    n.set(2, keptDims(n, op->result(2), axis));
}

void rmsNorm(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", -1), n.type(0).rank());
  if (n.failed())
    return;
  Op *op = n.b.emitOp(kRmsNorm, {n.in(0), n.b.expand(n.in(1), rowDims(n, axis))},
                      {{"axis", axis}, {"eps", n.floatAttr("epsilon", 1e-5f)}});
  if (op)
    n.set(0, op->result(0));
}

void cumSum(NodeContext &n) {
  auto given = n.intsIn(1, "the axis");
  if (!given)
    return;
  if (given->size() != 1)
    return n.b.fail("the axis: got " + llvm::Twine(given->size()) + " numbers, wanted one");
  int64_t axis = n.axis(given->front(), n.type(0).rank());
  if (n.failed())
    return;
  int64_t exclusive = n.intAttr("exclusive", 0) != 0, reverse = n.intAttr("reverse", 0) != 0;
  n.set(0, n.b.emit(kCumSum, {n.in(0)},
                    {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}));
}

/// The place of the extreme; of several the first, or the last.
template <const OpDef &extreme> void place(NodeContext &n) {
  const int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  const bool last = n.intAttr("select_last_index", 0), keep = n.intAttr("keepdims", 1);
  const int64_t count = n.type(0).dims[axis];
  Value *x = n.type(0).dtype == DType::Bool ? n.b.cast(n.in(0), DType::I32) : n.in(0);
  Value *hit = n.b.emit(kEqual, {x, n.b.reduce(extreme, x, {axis}, true)});
  Tensor places(DType::I64, {count});
  std::iota(places.mutableData<int64_t>(), places.mutableData<int64_t>() + count, 0);
  Ints dims(n.type(0).rank() - axis, 1); // broadcasts to the operand's
  dims[0] = count;
  Value *at = n.b.where(hit, n.b.reshape(n.b.constant(std::move(places)), dims), n.b.integer(last ? 0 : count - 1));
  n.set(0, n.b.reduce(last ? kReduceMax : kReduceMin, at, {axis}, keep));
}

constexpr NodeRule kRules[] = {
    {"ReduceSum", 1, 2, plain<kReduceSum>},
    {"ReduceMax", 1, 2, plain<kReduceMax>},
    {"ReduceMin", 1, 2, plain<kReduceMin>},
    {"ReduceProd", 1, 2, plain<kReduceProd>},
    {"ReduceMean", 1, 2, mean},
    {"ReduceL1", 1, 2, sumAfter<kAbs>},
    {"ReduceL2", 1, 2, l2},
    {"ReduceSumSquare", 1, 2, sumSquare},
    {"ReduceLogSum", 1, 2, logSum},
    {"ReduceLogSumExp", 1, 2, logSumExp},
    {"Softmax", 1, 1, softmax<kSoftmax>},
    {"LogSoftmax", 1, 1, softmax<kLogSoftmax>},
    {"LayerNormalization", 2, 3, layerNorm},
    {"RMSNormalization", 2, 2, rmsNorm},
    {"CumSum", 2, 2, cumSum},
    {"ArgMax", 1, 1, place<kReduceMax>},
    {"ArgMin", 1, 1, place<kReduceMin>},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kReductionRules = kRules;

} // namespace shardc
