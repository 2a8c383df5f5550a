// SPDX-License-Identifier: Apache-2.0
// Nodes that move data: cut, join, pad, repeat, gather, scatter.
#include "frontend/NodeContext.h"
#include "frontend/TorchMetadata.h"
#include "ir/graph/Fold.h"

namespace shardc {
namespace {

void concat(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  llvm::SmallVector<Value *> parts;
  for (Value *part : n.inputs()) {
    if (!part)
      return n.b.fail("inputs: got an absent one");
    if (part->type().rank() != n.type(0).rank())
      return n.b.fail("ranks differ: got " + toString(part->type()) + " beside " +
                      toString(n.type(0)));
    if (part->type().dims[axis] != 0)
      parts.push_back(part);
  }
  n.set(0, parts.empty() ? n.in(0) : n.b.concat(parts, axis));
}

void split(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  int64_t size = n.type(0).dims[axis], count = n.proto.output_size();
  std::optional<Ints> sizes = n.intsIn(1, "the sizes");
  if (n.failed())
    return;
  if (!sizes) {
    int64_t parts = n.intAttr("num_outputs", count);
    if (parts != count || count == 0)
      return n.b.fail("num_outputs: got " + llvm::Twine(parts) +
                      ", wanted the number of outputs, " + llvm::Twine(count));
    int64_t chunk = (size + count - 1) / count;
    sizes.emplace();
    for (int64_t i = 0; i < count; ++i)
      sizes->push_back(std::clamp<int64_t>(size - i * chunk, 0, chunk));
  }
  if (int64_t(sizes->size()) != count)
    return n.b.fail("split: got " + llvm::Twine(sizes->size()) + " sizes, wanted " +
                    llvm::Twine(count));
  int64_t sum = 0;
  for (int64_t s : *sizes) {
    if (s < 0 || s > size - sum)
      return n.b.fail("split: the sizes do not add up to dim " + llvm::Twine(axis) + ", which is " +
                      llvm::Twine(size));
    sum += s;
  }
  if (sum != size)
    return n.b.fail("split: got sizes that add up to " + llvm::Twine(sum) + ", wanted " +
                    llvm::Twine(size));
  int64_t start = 0;
  for (int64_t i = 0; i < count; start += (*sizes)[i++])
    if (n.wants(i))
      n.set(i, n.b.sliceAxis(n.in(0), axis, (*sizes)[i] ? start : 0, (*sizes)[i]));
}

void slice(NodeContext &n) {
  std::optional<Ints> starts = n.intsIn(1, "starts"), ends = n.intsIn(2, "ends");
  std::optional<Ints> axes = n.intsIn(3, "axes"), steps = n.intsIn(4, "steps");
  if (n.failed() || !starts || !ends)
    return;
  const Dims &from = n.type(0).dims;
  int64_t rank = from.size();
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i)
      axes->push_back(i);
  }
  if (!steps)
    steps.emplace(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size())
    return n.b.fail("starts, ends, axes and steps differ in length");
  n.axisList(*axes, rank);
  Ints from0(rank, 0), sizes(from), by(rank, 1);
  for (size_t k = 0; k < axes->size() && !n.failed(); ++k) {
    int64_t axis = n.axis((*axes)[k], rank), step = (*steps)[k];
    if (n.failed())
      return;
    if (step == 0)
      return n.b.fail("step: got 0, wanted another number");
    int64_t d = from[axis];
    if (d == 0)
      continue;
    // Beyond the dim a step takes one element, whatever its size.
    step = std::clamp(step, -std::max<int64_t>(d, 1), std::max<int64_t>(d, 1));
    auto at = [&](int64_t i, int64_t low, int64_t high) {
      return std::clamp(i < 0 ? i + d : i, low, high);
    };
    int64_t start, end;
    if (step > 0) {
      start = at((*starts)[k], 0, d), end = at((*ends)[k], 0, d);
      sizes[axis] = std::max<int64_t>((end - start + step - 1) / step, 0);
    } else {
      start = at((*starts)[k], 0, d - 1);
      end = (*ends)[k] < -d ? -1 : at((*ends)[k], -1, d - 1);
      sizes[axis] = std::max<int64_t>((start - end - step - 1) / -step, 0);
    }
    from0[axis] = sizes[axis] ? start : 0;
    by[axis] = step;
  }
  n.set(0, n.b.slice(n.in(0), from0, sizes, by));
}

void tile(NodeContext &n) {
  std::optional<Ints> repeats = n.intsIn(1, "repeats");
  if (!repeats)
    return;
  const Dims &from = n.type(0).dims;
  if (repeats->size() != from.size())
    return n.b.fail("repeats: got " + llvm::Twine(repeats->size()) + ", wanted one for each of " +
                    llvm::Twine(from.size()) + " dims");
  // [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r a, s b]
  Ints split, wide, dims;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t r = (*repeats)[i];
    if (r < 0 || !checkedNumElements({r, from[i]}))
      return n.b.fail("repeats: got " + llvm::Twine(r));
    if (r != 1 && from[i] != 1) {
      split.push_back(1);
      wide.push_back(r);
    }
    split.push_back(from[i]);
    wide.push_back(from[i] == 1 ? r : from[i]);
    dims.push_back(r * from[i]);
  }
  if (!checkedNumElements(wide))
    return n.b.fail("the result has too many elements: got " + formatDims(dims));
  n.set(0, n.b.reshape(n.b.expand(n.b.reshape(n.in(0), split), wide), dims));
}

void pad(NodeContext &n) {
  std::string mode = n.stringAttr("mode", "constant");
  if (mode != "constant")
    return n.unsupported("mode '" + mode + "'");
  std::optional<Ints> pads = n.intsIn(1, "pads"), axes = n.intsIn(3, "axes");
  double value = 0;
  if (n.in(2))
    if (auto given = n.scalarIn(2, "the padding value"))
      value = *given;
  if (n.failed() || !pads)
    return;
  int64_t rank = n.type(0).rank();
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < rank; ++i)
      axes->push_back(i);
  }
  n.axisList(*axes, rank);
  if (pads->size() != 2 * axes->size())
    return n.b.fail("pads: got " + llvm::Twine(pads->size()) + ", wanted " +
                    llvm::Twine(2 * axes->size()));
  if (n.failed())
    return;
  Ints before(rank, 0), after(rank, 0), starts(rank, 0), sizes(n.type(0).dims), steps(rank, 1);
  bool cut = false, grow = false;
  for (size_t k = 0; k < axes->size(); ++k) {
    int64_t axis = n.axis((*axes)[k], rank), low = (*pads)[k], high = (*pads)[k + axes->size()];
    constexpr int64_t kMost = int64_t(1) << 40;
    if (std::abs(low) > kMost || std::abs(high) > kMost)
      return n.b.fail("pads: got " + llvm::Twine(low) + " and " + llvm::Twine(high));
    before[axis] = std::max<int64_t>(low, 0);
    after[axis] = std::max<int64_t>(high, 0);
    starts[axis] = std::max<int64_t>(-low, 0);
    sizes[axis] -= starts[axis] + std::max<int64_t>(-high, 0);
    if (sizes[axis] < 0)
      return n.b.fail("pads: got more taken away than there is");
    cut |= low < 0 || high < 0;
    grow |= low > 0 || high > 0;
  }
  Value *x = cut ? n.b.slice(n.in(0), starts, sizes, steps) : n.in(0);
  n.set(0,
        grow ? n.b.emit(kPad, {x}, {{"before", before}, {"after", after}, {"value", value}}) : x);
}

/// Indices counted from the end made ordinary ones, where they can be told now.
Value *normalIndices(NodeContext &n, Value *indices, int64_t size) {
  const Tensor *known = constantOf(indices);
  if (!known || isFloat(known->dtype()))
    return indices;
  bool any = false;
  for (int64_t i = 0; i < known->numElements() && !any; ++i)
    any = known->asInt(i) < 0;
  if (!any)
    return indices;
  Value *zero = n.b.scalar(known->dtype(), 0), *length = n.b.scalar(known->dtype(), double(size));
  return n.b.where(n.b.emit(kLess, {indices, zero}), n.b.emit(kAdd, {indices, length}), indices);
}

/// Constant indices that are start, start + step, ... inside [0, size): a slice reads those without
/// a copy.
std::optional<std::pair<int64_t, int64_t>> regularRun(Value *indices, int64_t size) {
  const Tensor *known = constantOf(indices);
  if (!known || isFloat(known->dtype()) || known->numElements() == 0)
    return std::nullopt;
  int64_t count = known->numElements(), start = known->asInt(0),
          step = count > 1 ? known->asInt(1) - start : 1;
  for (int64_t i = 0; i < count; ++i)
    if (known->asInt(i) < 0 || known->asInt(i) >= size || known->asInt(i) != start + i * step)
      return std::nullopt;
  if (step == 0)
    return std::nullopt;
  return std::pair(start, step);
}

void gather(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  Value *data = n.in(0), *indices = normalIndices(n, n.in(1), n.type(0).dims[axis]);
  if (n.failed())
    return;
  if (auto run = regularRun(indices, n.type(0).dims[axis])) {
    const Dims &from = n.type(0).dims, &wanted = indices->type().dims;
    Ints dims(from.begin(), from.begin() + axis);
    dims.append(wanted.begin(), wanted.end());
    dims.append(from.begin() + axis + 1, from.end());
    n.set(0, n.b.reshape(
                 n.b.sliceAxis(data, axis, run->first, indices->type().numElements(), run->second),
                 dims));
  } else {
    Attrs attrs{{"axis", axis}};
    if (std::optional<int64_t> padding = axis == 0 ? paddingRow(n.proto) : std::nullopt)
      attrs.set("padding", *padding);
    n.set(0, n.b.emit(kGather, {data, indices}, std::move(attrs)));
  }
}

void gatherElements(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  Value *indices = normalIndices(n, n.in(1), n.type(0).dims[axis]);
  n.set(0, n.b.emit(kGatherElements, {n.in(0), indices}, {{"axis", axis}}));
}

void gatherNd(NodeContext &n) {
  n.set(0, n.b.emit(kGatherNd, {n.in(0), n.in(1)}, {{"batch_dims", n.intAttr("batch_dims", 0)}}));
}

void scatterElements(NodeContext &n) {
  int64_t axis = n.axis(n.intAttr("axis", 0), n.type(0).rank());
  if (n.failed())
    return;
  Value *indices = normalIndices(n, n.in(1), n.type(0).dims[axis]);
  n.set(0, n.b.emit(kScatterElements, {n.in(0), indices, n.in(2)},
                    {{"axis", axis}, {"reduction", n.stringAttr("reduction", "none")}}));
}

void scatterNd(NodeContext &n) {
  n.set(0, n.b.emit(kScatterNd, {n.in(0), n.in(1), n.in(2)},
                    {{"reduction", n.stringAttr("reduction", "none")}}));
}

void oneHot(NodeContext &n) {
  auto depth = n.scalarIn(1, "depth");
  if (!depth)
    return;
  if (!(*depth >= 1 && *depth <= double(kMaxRange)))
    return n.b.fail("depth: got " + llvm::Twine(std::to_string(*depth)) +
                    ", wanted a number from 1 to " + llvm::Twine(kMaxRange));
  if (n.type(2).dims != Dims{2})
    return n.b.fail("values: got " + toString(n.type(2)) + ", wanted [off, on]");
  int64_t rank = n.type(0).rank() + 1, axis = n.axis(n.intAttr("axis", -1), rank),
          classes = int64_t(*depth);
  if (n.failed())
    return;
  Ints dims(n.type(0).dims), line(rank, 1);
  dims.insert(dims.begin() + axis, 1);
  line[axis] = classes;
  Value *ids = n.b.reshape(n.b.cast(n.in(0), DType::I64), dims);
  Value *zero = n.b.integer(0), *length = n.b.integer(classes);
  ids = n.b.where(n.b.emit(kLess, {ids, zero}), n.b.emit(kAdd, {ids, length}), ids);
  Value *hot = n.b.emit(kEqual, {ids, n.b.reshape(n.b.iota(DType::I64, classes), line)});
  Value *off = n.b.reshape(n.b.sliceAxis(n.in(2), 0, 0, 1), {}),
        *on = n.b.reshape(n.b.sliceAxis(n.in(2), 0, 1, 1), {});
  n.set(0, n.b.where(hot, on, off));
}

void trilu(NodeContext &n) {
  double k = 0;
  if (n.in(1))
    if (auto given = n.scalarIn(1, "k"))
      k = *given;
  if (n.failed())
    return;
  const Type &x = n.type(0);
  if (x.rank() < 2)
    return n.b.fail("operand: got " + toString(x) + ", wanted 2 dims or more");
  bool upper = n.intAttr("upper", 1);
  n.set(0, n.b.where(n.b.diagonal(upper ? kGreaterEqual : kLessEqual, x.dim(-2), x.dim(-1), k), n.in(0), n.b.scalar(x.dtype, 0)));
}

constexpr NodeRule kRules[] = {
    {"Concat", 1, kAnyNumber, concat},
    {"Split", 1, 2, split},
    {"Slice", 3, 5, slice},
    {"Tile", 2, 2, tile},
    {"Pad", 2, 4, pad},
    {"Gather", 2, 2, gather},
    {"GatherElements", 2, 2, gatherElements},
    {"GatherND", 2, 2, gatherNd},
    {"ScatterElements", 3, 3, scatterElements},
    {"ScatterND", 3, 3, scatterNd},
    {"OneHot", 3, 3, oneHot},
    {"Trilu", 1, 2, trilu},
};

} // namespace

constinit const llvm::ArrayRef<NodeRule> kMovementRules = kRules;

} // namespace shardc
