// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/RowsProgram.h"

namespace shardc::host {
namespace {

constexpr int64_t kMostElements = int64_t(1) << 48;

bool readShape(Checks &c, RowsProgram &to) {
  llvm::SmallVector<int64_t> dims;
  if (!(c.intsAttr("dims", dims) && c.axisAttr("axis", dims.size(), to.axis) && c.intAttr("parts", to.parts, 1) &&
        c.that(to.axis >= 1, "attribute axis: wanted rows: at least 1") && c.that(dims.size() <= kMaxRank, "attribute dims: too many") &&
        c.that(to.parts >= 1 && to.parts <= kMostColumnParts, "attribute parts: wanted 1 to 4096")))
    return false;
  to.dims.assign(dims.begin(), dims.end());
  std::optional<int64_t> elements = checkedNumElements(to.dims);
  if (!c.that(elements && *elements > 0 && *elements <= kMostElements, "attribute dims: wanted at least one element, and not too many"))
    return false;
  to.rows = numElements(to.rowDims());
  to.length = numElements(to.columnDims());
  return true;
}

void findUsed(RowsProgram &to) {
  to.used.assign(to.program.code.size(), false);
  for (int16_t output : to.program.outputs)
    to.used[output] = true;
  for (size_t i = to.used.size(); i-- > 0;)
    for (int16_t arg : to.program.code[i].args)
      if (to.used[i] && arg >= 0)
        to.used[arg] = true;
}

/// Types, dims and places of the results.
bool checkResults(const Binding &b, Checks &c, const RowsProgram &to) {
  Dims perRow = to.dims, columns{to.parts};
  std::fill(perRow.begin() + to.axis, perRow.end(), 1);
  columns.append(to.columnDims().begin(), to.columnDims().end());
  std::vector<std::pair<unsigned, unsigned>> inPlace;
  for (size_t o = 0; o < b.out.size(); ++o) {
    const RowKind kind = to.kindOf(o);
    if (!(c.that(bool(b.out[o]), "absent result") &&
          c.dims(b.out[o], kind == RowKind::Element ? to.dims : kind == RowKind::Row ? perRow : columns) &&
          c.dtype(b.out[o], to.program.code[to.program.outputs[o]].dtype)))
      return false;
    for (size_t i = 0; i < b.in.size() && kind != RowKind::Column; ++i)
      if (b.in[i].dims == b.out[o].dims)
        inPlace.push_back({o, i});
  }
  return c.denseResults() && c.apart(inPlace);
}

} // namespace

bool readRowsProgram(const Binding &b, Checks &c, RowsProgram &to) {
  std::string body, outputs;
  if (!(c.that(!b.out.empty(), "no results") && c.stringAttr("body", body) && c.stringAttr("outputs", outputs) && readShape(c, to)))
    return false;
  llvm::SmallVector<llvm::StringRef> outputNames, inputNames;
  llvm::StringRef(outputs).split(outputNames, ',');
  if (!c.that(outputNames.size() == b.out.size(), "number of results: wanted those of 'outputs'"))
    return false;
  std::vector<std::string> names;
  llvm::SmallVector<DType> types;
  for (size_t i = 0; i < b.in.size(); ++i)
    names.push_back(("x" + llvm::Twine(i)).str());
  for (size_t i = 0; i < b.in.size(); ++i) {
    Dims strides;
    if (!(c.that(bool(b.in[i]), "operand " + std::to_string(i) + " is absent") &&
          c.that(broadcastStrides(b.in[i], to.dims, strides),
                 "operand of shape " + formatDims(b.in[i].dims) + " does not broadcast to " + formatDims(to.dims))))
      return false;
    inputNames.push_back(names[i]);
    types.push_back(b.in[i].dtype);
  }
  auto parsed = parseScalarProgram(body, inputNames, types, outputNames);
  if (!parsed)
    return c.that(false, "body: " + llvm::toString(parsed.takeError()));
  to.program = std::move(*parsed);
  std::string wrong = checkRows(to.program);
  if (!c.that(wrong.empty(), "body: " + wrong))
    return false;
  to.kinds = rowKinds(to.program);
  findUsed(to);
  return checkResults(b, c, to);
}

} // namespace shardc::host
