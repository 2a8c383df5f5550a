// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/IndexShapes.h"

namespace shardc::host {
namespace {

/// Indices with the data's rank, and beside the axis no larger.
bool indicesAlong(Checks &c, const Array &data, const Array &indices, int64_t &axis) {
  if (!(c.index(indices) && c.axisAttr("axis", data.dims.size(), axis) && c.rank(indices, data.dims.size())))
    return false;
  for (size_t i = 0; i < data.dims.size(); ++i)
    if (!c.that(int64_t(i) == axis || indices.dims[i] <= data.dims[i],
                "indices: got shape " + formatDims(indices.dims) + ", wanted at most " + formatDims(data.dims) +
                    " beside the axis"))
      return false;
  return true;
}

/// data, indices[, updates] -> a result like the data, all contiguous.
bool contiguousOperands(Checks &c, const Binding &b, unsigned operands) {
  if (!(c.arity(operands, operands, 1) && c.index(b.in[1]) && c.dtype(b.out[0], b.in[0].dtype) && c.denseResults()))
    return false;
  for (const Array &a : b.in)
    if (!c.contiguous(a))
      return false;
  return operands < 3 || c.dtype(b.in[2], b.in[0].dtype);
}

/// Adding up is not defined for truth values.
bool reductionAttr(Checks &c, const Array &data, Scatter &reduction) {
  std::string text;
  if (!c.stringAttr("reduction", text))
    return false;
  std::optional<Scatter> parsed = parseScatter(text);
  reduction = parsed.value_or(Scatter::None);
  return c.that(parsed.has_value(), "attribute reduction: got '" + text + "', wanted none, add, mul, max or min") &&
         c.that(reduction == Scatter::None || data.dtype != DType::Bool, "reduction: wanted none for type bool");
}

} // namespace

bool gatherElementsShape(Checks &c, const Binding &b, int64_t &axis) {
  return c.arity(2, 2, 1) && indicesAlong(c, b.in[0], b.in[1], axis) && c.dims(b.out[0], b.in[1].dims) &&
         c.dtype(b.out[0], b.in[0].dtype) && c.denseResults() && c.apart();
}

bool gatherElementsGradShape(Checks &c, const Binding &b, int64_t &axis, int64_t &size) {
  if (!(c.arity(2, 2, 1) && c.index(b.in[1]) && c.intAttr("size", size) && c.axisAttr("axis", b.in[0].dims.size(), axis) &&
        c.dims(b.in[1], b.in[0].dims) && c.dtype(b.out[0], b.in[0].dtype) && c.denseResults() && c.apart()))
    return false;
  Dims wanted = b.in[0].dims;
  wanted[axis] = size;
  return c.dims(b.out[0], wanted);
}

bool gatherNdShape(Checks &c, const Binding &b, int64_t &batchDims) {
  if (!(contiguousOperands(c, b, 2) && c.intAttr("batch_dims", batchDims, 0) && c.apart()))
    return false;
  llvm::ArrayRef<int64_t> data = b.in[0].dims, indices = b.in[1].dims;
  const int64_t common = int64_t(std::min(data.size(), indices.size()));
  if (!(c.that(batchDims >= 0 && batchDims < common, "attribute batch_dims: wanted fewer than the ranks") &&
        c.that(indices.back() <= int64_t(data.size()) - batchDims,
               "indices: got shape " + formatDims(indices) + ", wanted a shorter last dim") &&
        c.that(data.take_front(batchDims) == indices.take_front(batchDims),
               "the first " + std::to_string(batchDims) + " dims differ")))
    return false;
  Dims wanted(indices.drop_back());
  wanted.append(data.begin() + batchDims + indices.back(), data.end());
  return c.dims(b.out[0], wanted);
}

bool scatterElementsShape(Checks &c, const Binding &b, int64_t &axis, Scatter &reduction) {
  return contiguousOperands(c, b, 3) && reductionAttr(c, b.in[0], reduction) && indicesAlong(c, b.in[0], b.in[1], axis) &&
         c.dims(b.in[2], b.in[1].dims) && c.dims(b.out[0], b.in[0].dims) && c.apart({{0, 0}});
}

bool scatterNdShape(Checks &c, const Binding &b, Scatter &reduction) {
  if (!(contiguousOperands(c, b, 3) && reductionAttr(c, b.in[0], reduction) && c.dims(b.out[0], b.in[0].dims) &&
        c.apart({{0, 0}})))
    return false;
  llvm::ArrayRef<int64_t> data = b.in[0].dims, indices = b.in[1].dims;
  if (!c.that(!indices.empty() && indices.back() <= int64_t(data.size()),
              "indices: got shape " + formatDims(indices) + ", wanted a last dim of at most " + std::to_string(data.size())))
    return false;
  Dims wanted(indices.drop_back());
  wanted.append(data.begin() + indices.back(), data.end());
  return c.dims(b.in[2], wanted);
}

} // namespace shardc::host
