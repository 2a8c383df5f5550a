// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/Shapes.h"

namespace shardc::host {

bool gatherShape(Checks &c, const Array &data, const Array &indices, const Array &picked, GatherShape &shape) {
  int64_t axis;
  if (!(c.axisAttr("axis", data.dims.size(), axis) && c.index(indices) && c.contiguous(indices) &&
        c.contiguous(data) && c.contiguous(picked) && c.dtype(picked, data.dtype)))
    return false;
  llvm::ArrayRef<int64_t> dims = data.dims;
  Dims wanted(dims.begin(), dims.begin() + axis);
  wanted.append(indices.dims.begin(), indices.dims.end());
  wanted.append(dims.begin() + axis + 1, dims.end());
  shape = {numElements(dims.take_front(axis)), dims[axis], numElements(dims.drop_front(axis + 1)),
           indices.numElements()};
  return c.dims(picked, wanted);
}

bool reduceShape(Checks &c, const Binding &b, bool needsOne, ReduceShape &shape) {
  llvm::SmallVector<int64_t> axes;
  int64_t keep;
  if (!(c.arity(1, 1, 1) && c.intsAttr("axes", axes) && c.intAttr("keep_dims", keep, 0)))
    return false;
  const Array &x = b.in[0], &y = b.out[0];
  const int64_t rank = x.dims.size();
  llvm::SmallVector<bool> isReduced(rank, false);
  for (int64_t axis : axes) {
    if (!c.that(axis >= -rank && axis < rank, "axes: wanted axes of " + formatDims(x.dims)))
      return false;
    isReduced[axis < 0 ? axis + rank : axis] = true;
  }
  Dims wanted;
  for (int64_t i = 0; i < rank; ++i) {
    (isReduced[i] ? shape.reducedDims : shape.keptDims).push_back(x.dims[i]);
    (isReduced[i] ? shape.reducedStrides : shape.keptStrides).push_back(x.strides[i]);
    if (!isReduced[i] || keep)
      wanted.push_back(isReduced[i] ? 1 : x.dims[i]);
  }
  return c.dims(y, wanted) && c.dtype(y, x.dtype) && c.contiguous(y) && c.apart() &&
         c.that(!needsOne || y.numElements() == 0 || x.numElements() > 0, "the largest of no elements is wanted");
}

/// The part of `whole` that starts at `starts` and has `dims`.
static Array partOf(const Array &whole, llvm::ArrayRef<int64_t> starts, const Dims &dims) {
  Array a = whole;
  a.dims = dims;
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    offset += starts[i] * whole.strides[i];
  a.data = whole.as<char>() + (a.numElements() ? offset * byteSize(whole.dtype) : 0);
  return a;
}

bool concatParts(Checks &c, const Binding &b, llvm::SmallVectorImpl<Array> &parts) {
  int64_t axis;
  if (!(c.arity(1, 1 << 20, 1) && c.denseResults() && c.axisAttr("axis", b.out[0].dims.size(), axis) && c.apart()))
    return false;
  const Array &y = b.out[0];
  Dims starts(y.dims.size(), 0);
  for (size_t i = 0; i < b.in.size(); ++i) {
    const Array &x = b.in[i];
    if (!(c.that(bool(x), "operand " + std::to_string(i) + " is absent") && c.rank(x, y.dims.size()) &&
          c.dtype(x, y.dtype)))
      return false;
    Dims wanted = y.dims;
    wanted[axis] = x.dims[axis];
    if (!(c.dims(x, wanted) &&
          c.that(x.dims[axis] <= y.dims[axis] - starts[axis], "operands are longer than the result")))
      return false;
    parts.push_back(partOf(y, starts, x.dims));
    starts[axis] += x.dims[axis];
  }
  return c.that(starts[axis] == y.dims[axis], "operands are shorter than the result");
}

bool padPart(Checks &c, const Binding &b, Array &part, double &value) {
  llvm::SmallVector<int64_t> before, after;
  if (!(c.arity(1, 1, 1) && c.denseResults() && c.intsAttr("before", before) && c.intsAttr("after", after) &&
        c.floatAttr("value", value) && c.dtype(b.out[0], b.in[0].dtype) &&
        c.rank(b.out[0], b.in[0].dims.size()) && c.apart()))
    return false;
  const Array &x = b.in[0], &y = b.out[0];
  if (!c.that(before.size() == x.dims.size() && after.size() == x.dims.size(),
              "attributes before and after: wanted one for each dim"))
    return false;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int64_t room = y.dims[i] - x.dims[i];
    if (!c.that(before[i] >= 0 && before[i] <= room && after[i] == room - before[i],
                "result shape: got " + formatDims(y.dims) + ", wanted the padded " + formatDims(x.dims)))
      return false;
  }
  part = partOf(y, before, x.dims);
  return true;
}

bool normShape(Checks &c, const Array &x, NormShape &shape) {
  int64_t axis;
  if (!c.axisAttr("axis", x.dims.size(), axis))
    return false;
  shape.dtype = x.dtype;
  shape.rows.assign(x.dims.begin(), x.dims.begin() + axis);
  shape.row.assign(x.dims.begin() + axis, x.dims.end());
  Array row;
  row.dims = shape.row;
  row.strides.assign(x.strides.begin() + axis, x.strides.end());
  return c.that(row.contiguous(), "layout: wanted row-major rows");
}

} // namespace shardc::host
