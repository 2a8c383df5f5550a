// SPDX-License-Identifier: Apache-2.0
// Nodes about dims: they fold, or become views.
#include "frontend/NodeContext.h"
#include "frontend/OnnxTensor.h"
#include "frontend/TensorValue.h"
#include "ir/graph/Fold.h"
#include "ir/ops/Infer.h"
#include <cmath>
#include <numeric>

namespace shardc {
namespace {

void shape(NodeContext &n) {
  const Dims &dims = n.type(0).dims;
  int64_t rank = dims.size();
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t start = clamp(n.intAttr("start", 0)), end = clamp(n.intAttr("end", rank));
  n.set(0, n.b.ints(llvm::ArrayRef(dims).slice(start, std::max<int64_t>(end - start, 0))));
}

void size(NodeContext &n) {
  n.set(0, n.b.constant(Tensor::of<int64_t>(DType::I64, {}, {n.type(0).numElements()})));
}

void reshape(NodeContext &n) {
  std::optional<Ints> wanted = n.intsIn(1, "the new shape");
  if (!wanted)
    return;
  const Dims &from = n.type(0).dims;
  bool allowZero = n.intAttr("allowzero", 0);
  Ints dims = *wanted;
  int64_t inferred = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allowZero) {
      if (i >= from.size())
        return n.b.fail("shape: got 0 (copy) for dim " + llvm::Twine(i) + " of an operand with " +
                        llvm::Twine(from.size()) + " dims");
      dims[i] = from[i];
    } else if (dims[i] == -1) {
      if (inferred >= 0)
        return n.b.fail("shape: got two dims of -1, wanted one at most");
      inferred = i;
      dims[i] = 1;
    } else if (dims[i] < 0) {
      return n.b.fail("shape: got a dim of " + llvm::Twine(dims[i]));
    }
  }
  auto product = checkedNumElements(dims);
  if (!product)
    return n.b.fail("shape: got " + formatDims(dims) + ", which is too large");
  if (inferred >= 0) {
    if (*product == 0 || n.type(0).numElements() % *product)
      return n.b.fail("shape: -1 has no solution: got " + llvm::Twine(n.type(0).numElements()) +
                      " elements for " + formatDims(dims) + ", wanted a multiple of " +
                      llvm::Twine(*product));
    dims[inferred] = n.type(0).numElements() / *product;
  }
  n.set(0, n.b.reshape(n.in(0), dims));
}

void flatten(NodeContext &n) {
  const Dims &from = n.type(0).dims;
  int64_t rank = from.size(), axis = n.intAttr("axis", 1);
  if (axis < -rank || axis > rank)
    return n.b.fail("axis: got " + llvm::Twine(axis) + ", wanted at most " + llvm::Twine(rank));
  llvm::ArrayRef<int64_t> all(from);
  size_t at = axis < 0 ? axis + rank : axis;
  n.set(0,
        n.b.reshape(n.in(0), {numElements(all.take_front(at)), numElements(all.drop_front(at))}));
}

void squeeze(NodeContext &n) {
  const Dims &from = n.type(0).dims;
  int64_t rank = from.size();
  std::optional<Ints> given = n.axes(1);
  if (n.failed())
    return;
  Ints axes;
  if (given)
    axes = n.axisList(*given, rank);
  else
    for (int64_t i = 0; i < rank; ++i)
      if (from[i] == 1)
        axes.push_back(i);
  if (n.failed())
    return;
  Ints dims;
  for (int64_t i = 0; i < rank; ++i) {
    bool drop = llvm::is_contained(axes, i);
    if (drop && from[i] != 1)
      return n.b.fail("dim " + llvm::Twine(i) + " cannot be squeezed: got " + formatDims(from) +
                      ", wanted 1 there");
    if (!drop)
      dims.push_back(from[i]);
  }
  n.set(0, n.b.reshape(n.in(0), dims));
}

void unsqueeze(NodeContext &n) {
  std::optional<Ints> given = n.axes(1);
  if (!given)
    return;
  int64_t rank = n.type(0).rank() + given->size();
  Ints axes = n.axisList(*given, rank);
  if (n.failed())
    return;
  Ints dims = n.type(0).dims;
  for (int64_t axis : axes)
    dims.insert(dims.begin() + axis, 1);
  n.set(0, n.b.reshape(n.in(0), dims));
}

void transpose(NodeContext &n) {
  int64_t rank = n.type(0).rank();
  Ints perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (auto given = n.intsAttr("perm")) {
    Ints sorted = *given, all(perm.rbegin(), perm.rend());
    llvm::sort(sorted);
    if (sorted != all)
      return n.b.fail("perm: got " + formatDims(*given) + ", wanted each of " + llvm::Twine(rank) +
                      " dims once");
    perm = *given;
  }
  n.set(0, n.b.transpose(n.in(0), perm));
}

void expand(NodeContext &n) {
  std::optional<Ints> dims = n.intsIn(1, "the new shape");
  if (!dims)
    return;
  if (!checkedNumElements(*dims))
    return n.b.fail("shape: got " + formatDims(*dims) +
                    ", wanted dims from 0 on that are not too large");
  auto both = broadcastDims(n.type(0).dims, *dims);
  if (!both)
    return n.b.fail("dims do not broadcast: got " + formatDims(n.type(0).dims) + " and " +
                    formatDims(*dims));
  n.set(0, n.b.expand(n.in(0), *both));
}

void constantOfShape(NodeContext &n) {
  std::optional<Ints> dims = n.intsIn(0, "the shape");
  if (!dims)
    return;
  if (!checkedNumElements(*dims))
    return n.b.fail("shape: got " + formatDims(*dims) +
                    ", wanted dims from 0 on that are not too large");
  Tensor value = Tensor::splat(DType::F32, {}, 0);
  if (auto *attr = n.find("value")) {
    auto given = tensorValue(n.services.model, attr->t(), n.b.place());
    if (!given)
      return n.b.fail(llvm::toString(given.takeError()));
    if (given->numElements() != 1)
      return n.b.fail("value: got " + formatDims(given->dims()) + ", wanted one element");
    value = *given;
  }
  n.set(0, n.b.splat(value, *dims));
}

/// Integers wrap round at the ends of their type, as the additions of a loop would.
template <typename T> Tensor rangeOf(const Tensor &start, const Tensor &delta, int64_t count) {
  Tensor result(start.dtype(), {count});
  for (int64_t i = 0; i < count; ++i)
    if constexpr (std::is_integral_v<T>)
      result.mutableData<T>()[i] =
          T(uint64_t(start.asInt(0)) + uint64_t(i) * uint64_t(delta.asInt(0)));
    else
      result.mutableData<T>()[i] = T(T(start.asDouble(0)) + T(i) * T(delta.asDouble(0)));
  return result;
}

void range(NodeContext &n) {
  auto start = n.scalarIn(0, "start"), limit = n.scalarIn(1, "limit"),
       delta = n.scalarIn(2, "delta");
  if (!start || !limit || !delta)
    return;
  if (*delta == 0)
    return n.b.fail("delta: got 0");
  double count = std::max(std::ceil((*limit - *start) / *delta), 0.0);
  if (!(count <= double(kMaxRange)))
    return n.b.fail("range has too many elements: got " + llvm::Twine(std::to_string(count)) + ", wanted at most " +
                        llvm::Twine(kMaxRange),
                    "check --dim, --batch and --input-shape: is one too large?");
  const Tensor &from = *n.constantIn(0, "start"), &by = *n.constantIn(2, "delta");
  if (n.type(2).dtype != n.type(0).dtype)
    return n.b.fail("delta: got " + toString(n.type(2)) + ", wanted the type of start, " +
                    toString(n.type(0)));
  switch (n.type(0).dtype) {
  case DType::I64:
    return n.set(0, n.b.constant(rangeOf<int64_t>(from, by, int64_t(count))));
  case DType::I32:
    return n.set(0, n.b.constant(rangeOf<int32_t>(from, by, int64_t(count))));
  case DType::F32:
    return n.set(0, n.b.constant(rangeOf<float>(from, by, int64_t(count))));
  case DType::F64:
    return n.set(0, n.b.constant(rangeOf<double>(from, by, int64_t(count))));
  default:
    return n.unsupported("a range of " + shardc::toString(n.type(0).dtype));
  }
}

/// Ones where column - row = k.
void eyeLike(NodeContext &n) {
  const Type &type = n.type(0);
  if (type.rank() != 2)
    return n.b.fail("operand: got " + toString(type) + ", wanted 2 dims");
  const int64_t asked = n.intAttr("dtype", 0), rows = type.dims[0], columns = type.dims[1];
  const std::optional<DType> dtype = asked ? onnxDType(asked) : type.dtype;
  if (!dtype)
    return n.b.fail("attribute 'dtype': got " + llvm::Twine(asked) + ", wanted a type of numbers");
  n.set(0, n.b.cast(n.b.diagonal(kEqual, rows, columns, double(n.intAttr("k", 0))), *dtype));
}

constexpr NodeRule kRules[] = {
    {"Shape", 1, 1, shape},
    {"Size", 1, 1, size},
    {"Reshape", 2, 2, reshape},
    {"Flatten", 1, 1, flatten},
    {"Squeeze", 1, 2, squeeze},
    {"Unsqueeze", 2, 2, unsqueeze},
    {"Transpose", 1, 1, transpose},
    {"Expand", 2, 2, expand},
    {"ConstantOfShape", 1, 1, constantOfShape},
    {"Range", 3, 3, range},
    {"EyeLike", 1, 1, eyeLike},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kShapeRules = kRules;

} // namespace shardc
