// SPDX-License-Identifier: Apache-2.0
#include "passes/raise/Distances.h"
#include "ir/graph/Fold.h"
#include "passes/raise/Match.h"
#include <cstring>

namespace shardc::raising {

using namespace match;

/// Indices [.., rows, columns] that are the same for every batch and head; nullopt if they are not known.
static std::optional<Tensor> sharedIndices(Value *value, int64_t rows, int64_t columns) {
  while (value->op()->is(kExpand) || value->op()->is(kReshape)) // of leading dims only, or the sizes below differ
    value = value->op()->operand(0);
  const Tensor *t = constantOf(value);
  if (!t || t->rank() < 2 || t->dims()[t->rank() - 2] != rows || t->dims()[t->rank() - 1] != columns)
    return std::nullopt;
  const int64_t each = rows * columns, bytes = each * byteSize(t->dtype());
  const char *data = static_cast<const char *>(t->bytes());
  for (int64_t i = each; i < t->numElements(); i += each)
    if (std::memcmp(data, data + i * byteSize(t->dtype()), bytes) != 0)
      return std::nullopt;
  Tensor first(DType::I64, {rows, columns});
  for (int64_t i = 0; i < std::min(each, t->numElements()); ++i)
    first.mutableData<int64_t>()[i] = int64_t(t->asDouble(i));
  return first;
}

/// What is repeated for every batch, by reshape and expand or by the product: [1, H, P, D] or, of one batch, [H, P, D]. Null if it is not.
static Value *repeated(Value *value, int64_t batch, int64_t heads) {
  const int64_t p = value->type().dim(-2), d = value->type().dim(-1);
  if (value->type().dims == Dims{1, heads, p, d})
    return value;
  if (value->op()->is(kReshape))
    value = value->op()->operand(0);
  if (value->op()->is(kExpand))
    value = value->op()->operand(0);
  const Dims &dims = value->type().dims;
  if (dims == Dims{1, heads, p, d} || (batch == 1 && dims == Dims{heads, p, d}))
    return value;
  return nullptr;
}

std::optional<DistanceTerm> matchDistances(Builder &build, Value *term, llvm::ArrayRef<int64_t> scores) {
  DistanceTerm found;
  const int64_t queries = scores[2], keys = scores[3];
  Value *inner = takeScale(skipReshape(term), found.scale);
  if (Value *before = swappedLastTwo(inner)) {
    found.ofKeys = true;
    inner = before;
  }
  inner = takeScale(inner, found.scale);
  if (!inner->op()->is(kGatherElements))
    return std::nullopt;
  const int64_t rank = inner->type().rank(), axis = inner->op()->attrs.getInt("axis");
  const bool joined = rank == 3 && inner->type().dim(0) == scores[0] * scores[1];
  if ((!joined && inner->type().dims != Dims(scores)) || (axis != rank - 1 && axis != -1))
    return std::nullopt;
  Value *product = takeScale(inner->op()->operand(0), found.scale), *indices = inner->op()->operand(1);
  if (!product->op()->is(kMatMul) || product->op()->attrs.getInt("transpose_a", 0) || product->op()->operand(2))
    return std::nullopt;
  found.content = takeScale(product->op()->operand(0), found.scale);
  Value *positions = takeScale(product->op()->operand(1), found.scale);
  if (positions->type().rank() != rank)
    return std::nullopt;
  if (!product->op()->attrs.getInt("transpose_b", 0)) {
    Value *before = swappedLastTwo(positions);
    positions = before ? before : build.transpose(positions, rank == 4 ? Ints{0, 1, 3, 2} : Ints{0, 2, 1});
  }
  found.positions = repeated(takeScale(positions, found.scale), scores[0], scores[1]);
  const int64_t rows = found.ofKeys ? keys : queries, columns = found.ofKeys ? queries : keys;
  std::optional<Tensor> table = sharedIndices(indices, rows, columns);
  if (!found.positions || !table || product->type().dim(-2) != rows)
    return std::nullopt;
  const int64_t count = found.positions->type().dim(-2);
  found.rows.assign(queries + keys - 1, -1);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t index = table->data<int64_t>()[r * columns + c];
      index += index < 0 ? count : 0;
      int64_t &row = found.rows[(found.ofKeys ? c - r : r - c) + keys - 1];
      if (index < 0 || index >= count || (row >= 0 && row != index))
        return std::nullopt;
      row = index;
    }
  return found;
}

/// Rows [first, first + count) of dim `axis`, taken as early as that costs nothing: from the operands of what makes the value and is not
/// used by others.
static Value *cutRows(Builder &build, Value *value, int64_t axis, int64_t first, int64_t count) {
  const Dims &dims = value->type().dims;
  if (dims[axis] == count)
    return value;
  const Op &op = *value->op();
  Dims cut = dims;
  cut[axis] = count;
  if (op.is(kReshape)) {
    const Dims &from = op.operand(0)->type().dims;
    int64_t before = numElements(llvm::ArrayRef(dims).take_front(axis)), product = 1;
    for (size_t a = 0; a < from.size(); product *= from[a++])
      if (product == before && from[a] == dims[axis])
        return build.reshape(cutRows(build, op.operand(0), a, first, count), cut);
  }
  if (op.is(kTranspose)) {
    const Ints &perm = op.attrs.getInts("perm");
    return build.transpose(cutRows(build, op.operand(0), perm[axis], first, count), perm);
  }
  if (op.is(kAdd) && value->hasOneUse()) {
    auto side = [&](Value *x) {
      int64_t at = axis - value->type().rank() + x->type().rank();
      return at < 0 || x->type().dims[at] == 1 ? x : cutRows(build, x, at, first, count);
    };
    return build.add(side(op.operand(0)), side(op.operand(1)));
  }
  if (op.is(kMatMul) && value->hasOneUse() && axis == value->type().rank() - 2 && !op.operand(2) &&
      !op.attrs.getInt("transpose_a", 0) && op.operand(0)->type().rank() == value->type().rank())
    return build.make(kMatMul, {cutRows(build, op.operand(0), axis, first, count), op.operand(1)}, op.attrs);
  Ints starts(dims.size(), 0);
  starts[axis] = first;
  return build.slice(value, starts, cut);
}

Value *distanceRows(Builder &build, const DistanceTerm &term) {
  auto [low, high] = std::minmax_element(term.rows.begin(), term.rows.end());
  const int64_t first = *low, count = *high - first + 1;
  const int64_t axis = term.positions->type().rank() - 2;
  Value *rows = cutRows(build, term.positions, axis, first, count);
  Ints perm = axis == 2 ? Ints{0, 2, 1, 3} : Ints{1, 0, 2};
  rows = build.transpose(rows, perm);
  rows = build.reshape(rows, {count, rows->type().dim(-2), rows->type().dim(-1)});
  bool each = count == int64_t(term.rows.size()); // in their order?
  for (size_t i = 0; i < term.rows.size(); ++i)
    each &= term.rows[i] == first + int64_t(i);
  if (each)
    return rows;
  Tensor table(DType::I64, {int64_t(term.rows.size())});
  for (size_t i = 0; i < term.rows.size(); ++i)
    table.mutableData<int64_t>()[i] = term.rows[i] - first;
  return build.make(kGather, {rows, build.constant(std::move(table))}, {{"axis", int64_t(0)}});
}

} // namespace shardc::raising
