// SPDX-License-Identifier: Apache-2.0
#include "passes/FusedGroup.h"
#include "ir/graph/Builder.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// Blocks that share the rows of a sum of columns: two for each multiprocessor of the GPUs that plans are made for.
constexpr int64_t kColumnParts = 264;

RowKind kindOf(const Value *value) {
  std::optional<RowForm> form = rowFormOf(*value->op());
  return form ? form->results[value->index()] : RowKind::Element;
}

llvm::SmallVector<FusedInput> inputsOf(const FusedGroup &group) {
  llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
  llvm::SmallVector<FusedInput> inputs;
  for (Op *op : group.ops)
    for (unsigned i = 0; i < op->numOperands(); ++i) {
      FusedInput input = inputOf(*op, i);
      if (input.value && !members.contains(input.value->op()) && !inlineNumber(input.value) && !llvm::is_contained(inputs, input))
        inputs.push_back(input);
    }
  return inputs;
}

namespace {

/// What others read.
llvm::SmallVector<Value *> outputsOf(Graph &graph, const FusedGroup &group) {
  llvm::DenseSet<const Op *> members(group.ops.begin(), group.ops.end());
  llvm::SmallVector<Value *> outputs;
  for (Op *op : group.ops)
    for (unsigned i = 0; i < op->numResults(); ++i) {
      Value *v = op->result(i);
      if (graph.isOutput(v) || llvm::any_of(v->uses(), [&](const Use &u) { return !members.contains(u.op); }))
        outputs.push_back(v);
    }
  return outputs;
}

void replace(Graph &graph, Value *v, Value *made) {
  made->setBatchMajor(v->batchMajor());
  std::string name = v->name().str();
  graph.replaceAllUses(v, made);
  graph.rename(v, "gone");
  graph.rename(made, name);
}

void emitPointwise(Graph &graph, const FusedGroup &group) {
  llvm::SmallVector<Value *> inputs, outputs = outputsOf(graph, group);
  for (FusedInput input : inputsOf(group))
    inputs.push_back(input.value);
  FusedBody body = writeBody(group.ops, inputs, outputs);
  Op *last = group.ops.back();
  Builder b(graph, last);
  b.stampLike(*last);
  Op *fused =
      b.make(kFused, inputs, {{"body", body.text}, {"outputs", body.outputs}, {"dims", Ints(group.dims)}})->op();
  for (auto [i, v] : llvm::enumerate(outputs))
    replace(graph, v, fused->result(i));
  for (Op *op : llvm::reverse(group.ops))
    graph.erase(op);
}

/// Blocks that share the rows. No array of the sums' type among the operands: none of them may take its place.
int64_t partsOf(const FusedGroup &group, llvm::ArrayRef<Value *> inputs) {
  const int64_t rows = numElements(llvm::ArrayRef(group.dims).take_front(group.axis));
  int64_t parts = std::min(kColumnParts, (rows + 1) / 2);
  auto clashes = [&](const Value *v) {
    const Dims &dims = v->type().dims;
    return !dims.empty() && dims[0] == parts && llvm::ArrayRef(dims).drop_front() == llvm::ArrayRef(group.dims).drop_front(group.axis);
  };
  while (parts > 1 && llvm::any_of(inputs, clashes))
    --parts;
  return parts;
}

/// Elements first: they may take the place of an operand.
int order(const Value *v) { return int(kindOf(v)) == int(RowKind::Row) ? 1 : kindOf(v) == RowKind::Element ? 0 : 2; }

void finishColumns(Graph &graph, Builder &b, Value *v, Value *parts) {
  ColumnTail tail = tailOf(v);
  Value *sums = b.make(kColumnSums, {parts}, {{"dtypes", toString(tail.dtype).str()}});
  replace(graph, tail.last, b.reshape(sums, tail.last->type().dims));
  for (Op *link : llvm::reverse(tail.chain))
    graph.erase(link);
}

void emitRows(Graph &graph, const FusedGroup &group) {
  llvm::SmallVector<Value *> outputs = outputsOf(graph, group), values;
  llvm::stable_sort(outputs, [&](Value *a, Value *b) { return order(a) < order(b); });
  if (outputs.empty())
    return;
  Op *last = group.ops.back();
  Builder b(graph, last);
  b.stampLike(*last);
  llvm::SmallVector<FusedInput> inputs = inputsOf(group);
  FusedBody body = writeBody(group.ops, inputs, outputs);
  Dims perRow = group.dims;
  std::fill(perRow.begin() + group.axis, perRow.end(), 1);
  for (FusedInput input : inputs) {
    Value *v = input.perRow ? b.reshape(input.value, perRow) : input.value;
    v->setBatchMajor(input.value->batchMajor());
    values.push_back(v);
  }
  Attrs attrs{{"body", body.text}, {"outputs", body.outputs}, {"dims", Ints(group.dims)}, {"axis", group.axis}};
  if (kindOf(outputs.back()) == RowKind::Column)
    attrs.set("parts", partsOf(group, values));
  Op *fused = b.make(kFusedRows, values, std::move(attrs))->op();
  for (auto [i, v] : llvm::enumerate(outputs)) {
    Value *made = fused->result(i);
    if (kindOf(v) == RowKind::Column)
      finishColumns(graph, b, v, made);
    else
      replace(graph, v, b.reshape(made, v->type().dims));
  }
  for (Op *op : llvm::reverse(group.ops))
    graph.erase(op);
}

} // namespace

void emitGroup(Graph &graph, const FusedGroup &group) {
  group.axis < 0 ? emitPointwise(graph, group) : emitRows(graph, group);
}

} // namespace shardc
